# The render stage, lowest floor first: text, math, code, font (what a page is made of) - page, paths, view
# (what a page is) - book (what the stage is told) - context, component_view, model_view (from one to the
# other) - site (all of it).  It imports neither the site builder nor torch.
"""Books in, a site out: `sitegen.render.site.render`."""

# Pictures made while the site is built: plain values in, inline SVG out.  None needs a script, each has a
# text alternative that says all it shows, and none tells two things apart by colour alone.
"""Layer maps, dataflow pictures and bar figures."""

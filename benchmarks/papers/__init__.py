"""Tables and figures of the papers: theirs and ours side by side."""

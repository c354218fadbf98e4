"""One page, one stylesheet, one script, no build step; the broker is handed this folder and serves it."""

PAGE = "index.html"

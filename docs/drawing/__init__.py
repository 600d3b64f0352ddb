"""The pictures of the site, drawn by the package when the site is built."""

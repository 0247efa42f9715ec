"""The web page: tables to look at in a browser, drawn on the server, with pictures where people would rather look than read."""

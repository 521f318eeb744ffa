"""Models: found, fetched, imported, loaded, and proven before they are used."""

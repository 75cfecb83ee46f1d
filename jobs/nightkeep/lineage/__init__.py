"""Published versions -> OpenLineage events, with a facet for outcome and proof."""

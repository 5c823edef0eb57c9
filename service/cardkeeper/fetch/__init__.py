"""Where cards come from: egress policy, HTTP, candidates, freshness."""

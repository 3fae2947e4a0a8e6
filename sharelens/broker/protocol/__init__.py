"""The wire: frames, requests and answers, who answers what, connections."""

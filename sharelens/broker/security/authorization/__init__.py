"""Who may do what: ACL entries and the decisions that follow from them (StandardAuthorizer)."""

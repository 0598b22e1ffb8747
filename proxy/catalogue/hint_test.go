package catalogue

import "testing"

func TestHint(t *testing.T) {
	tools := shop("git.hub", "create_issue", "listIssues", "list_pull_requests", "merge_pull_request", "hub_search", "get_git_user").Tools
	for chars, want := range map[int]string{
		100: "issue, list, pull, requests, create, merge, search, get, user", 20: "issue, list, pull", 4: "", 0: "",
	} {
		if got := Hint("git.hub", tools.All(), chars); got != want {
			t.Errorf("%d characters: %q, want %q", chars, got, want)
		}
	}
	if got := Hint("s", (*Tools)(nil).All(), 60); got != "" {
		t.Errorf("no tools: %q", got)
	}
}

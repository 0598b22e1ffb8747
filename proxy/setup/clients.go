package setup

import (
	"path/filepath"
	"strings"
)

// Place is where clients keep their files.
type Place struct {
	GOOS   string              // runtime.GOOS
	Home   string              // the user's home folder
	Cwd    string              // of the project
	Getenv func(string) string // APPDATA, XDG_CONFIG_HOME, CODEX_HOME
}

// Source is a file of a client that may hold servers.
type Source struct {
	Client string // as people call it
	Key    string // how a command line names it
	File   string
	form   form
}

// form says where in a file its servers are.
type form struct {
	read func(file string, b []byte, path []string) ([]foreign, error)
	path []string // of the member that holds them
}

// Sources are the files that clients of this system would have, whether they
// are there or not.
func Sources(p Place) []Source {
	standard := form{readJSON, []string{"mcpServers"}}
	app, config := p.appData(), p.config()
	code := filepath.Join(app, "Code", "User")
	return []Source{
		{"Claude Desktop", "claude-desktop", filepath.Join(app, "Claude", "claude_desktop_config.json"), standard},
		{"Claude Code", "claude-code", filepath.Join(p.Home, ".claude.json"), standard},
		{"Claude Code, this project", "claude-code", filepath.Join(p.Home, ".claude.json"), form{readJSON, []string{"projects", p.Cwd, "mcpServers"}}},
		{"Cursor", "cursor", filepath.Join(p.Home, ".cursor", "mcp.json"), standard},
		{"Windsurf", "windsurf", filepath.Join(p.Home, ".codeium", "windsurf", "mcp_config.json"), standard},
		{"VS Code", "vscode", filepath.Join(code, "mcp.json"), form{readJSON, []string{"servers"}}},
		{"VS Code", "vscode", filepath.Join(code, "settings.json"), form{readJSON, []string{"mcp", "servers"}}},
		{"Cline", "cline", filepath.Join(code, "globalStorage", "saoudrizwan.claude-dev", "settings", "cline_mcp_settings.json"), standard},
		{"Gemini", "gemini", filepath.Join(p.Home, ".gemini", "settings.json"), standard},
		{"OpenCode", "opencode", filepath.Join(config, "opencode", "opencode.json"), form{readJSON, []string{"mcp"}}},
		{"OpenCode", "opencode", filepath.Join(config, "opencode", "opencode.jsonc"), form{readJSON, []string{"mcp"}}},
		{"Codex", "codex", filepath.Join(p.codex(), "config.toml"), form{readTOML, []string{"mcp_servers"}}},
		{"Continue", "continue", filepath.Join(p.Home, ".continue", "config.yaml"), form{readYAML, []string{"mcpServers"}}},
		{".mcp.json", "project", filepath.Join(p.Cwd, ".mcp.json"), standard},
		{"VS Code, this project", "project", filepath.Join(p.Cwd, ".vscode", "mcp.json"), form{readJSON, []string{"servers"}}},
	}
}

// FileSource is a file that a person named, by its ending and content.
func FileSource(file string) []Source {
	in := func(f form) Source { return Source{filepath.Base(file), "file", file, f} }
	switch strings.ToLower(filepath.Ext(file)) {
	case ".toml":
		return []Source{in(form{readTOML, []string{"mcp_servers"}})}
	case ".yaml", ".yml":
		return []Source{in(form{readYAML, []string{"mcpServers"}})}
	}
	return []Source{in(form{readJSON, []string{"mcpServers"}}), in(form{readJSON, []string{"servers"}}),
		in(form{readJSON, []string{"mcp", "servers"}}), in(form{readJSON, []string{"mcp"}})}
}

// appData is where desktop programs keep their settings.
func (p Place) appData() string {
	switch p.GOOS {
	case "darwin":
		return filepath.Join(p.Home, "Library", "Application Support")
	case "windows":
		if dir := p.Getenv("APPDATA"); dir != "" {
			return dir
		}
		return filepath.Join(p.Home, "AppData", "Roaming")
	}
	return p.config()
}

// config is where command-line programs keep theirs, on every system.
func (p Place) config() string {
	if dir := p.Getenv("XDG_CONFIG_HOME"); dir != "" && p.GOOS != "windows" {
		return dir
	}
	return filepath.Join(p.Home, ".config")
}

func (p Place) codex() string {
	if dir := p.Getenv("CODEX_HOME"); dir != "" {
		return dir
	}
	return filepath.Join(p.Home, ".codex")
}

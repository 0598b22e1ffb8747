package cli

import (
	"github.com/spf13/cobra"

	"toolguardian/proxy"
	"toolguardian/proxy/catalogue"
)

func (a *app) skillsCommand() *cobra.Command {
	var o routeOptions
	c := &cobra.Command{
		Use: "skills", Short: "What loading every skill up front would cost, and what the two tools for them cost", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.skillsReport(o) },
	}
	c.Flags().StringVar(&o.config, "config", "", "the file with mcpServers (default ~/.tool-guardian/mcp.json)")
	c.Flags().StringVar(&o.envFile, "env-file", "", "the .env to read (default: searched upward from the config)")
	return c
}

// skillsSaved is the report; tokens are characters / 3.5.
type skillsSaved struct {
	Skills []skillTokens `json:"skills"`
	All    int           `json:"all"`   // tokens of every skill's text
	Tools  int           `json:"tools"` // tokens of list_skills and read_skill, on every request
	Saved  int           `json:"saved"`
}

type skillTokens struct {
	Name   string `json:"name"`
	Tokens int    `json:"tokens"`
}

func (a *app) skillsReport(o routeOptions) error {
	home, err := a.home()
	if err != nil {
		return err
	}
	cfg, err := a.loadConfig(o, home)
	if err != nil {
		return err
	}
	var settings proxy.Options
	if err := settings.ReadSettings(cfg.Setting); err != nil {
		return usagef("%v", err)
	}
	found := catalogue.FindSkills(settings.SkillFolders)
	for _, n := range found.Notes() {
		a.say("%s", n)
	}
	r := skillsSaved{Skills: []skillTokens{}}
	for _, s := range found.All() {
		r.Skills = append(r.Skills, skillTokens{s.Name, catalogue.Tokens(s.Chars)})
		r.All += catalogue.Tokens(s.Chars)
	}
	if r.Tools, err = proxy.SkillTokens(found); err != nil {
		return err
	}
	r.Saved = r.All - r.Tools
	a.printSkills(r)
	return nil
}

func (a *app) printSkills(r skillsSaved) {
	if a.json {
		a.printJSON(r)
		return
	}
	if len(r.Skills) == 0 {
		a.print("no skills: set TOOL_GUARDIAN_SKILLS to the folders that hold them, each skill a folder with a SKILL.md\n")
		return
	}
	t := a.table("skill", "tokens (characters / 3.5)")
	for _, s := range r.Skills {
		t.row(s.Name, s.Tokens)
	}
	t.row("all, loaded up front", r.All)
	t.row("list_skills and read_skill instead", r.Tools)
	t.row("saved on every request", r.Saved)
	t.flush()
}

package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// width is that of the narrowest terminal worth having, less a margin.
const width = 92

// page is what the audience sees: coloured on a terminal, plain anywhere else.
type page struct {
	out    io.Writer
	colour bool
}

func newPage(out *os.File) *page {
	info, err := out.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0
	return &page{out: out, colour: terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

const (
	bold   = "1"
	red    = "1;31"
	green  = "1;32"
	yellow = "33"
	cyan   = "1;36"
)

func (p *page) paint(style, text string) string {
	if !p.colour || style == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

func (p *page) line(text string) { fmt.Fprintln(p.out, text) }

func (p *page) title(text string) {
	p.line(p.paint(bold, text))
	p.line("")
}

func (p *page) chapter(number int, text string) {
	heading := fmt.Sprintf("── %d. %s ", number, text)
	p.line("")
	p.line(p.paint(cyan, heading+strings.Repeat("─", max(0, width-len([]rune(heading))))))
	p.line("")
}

// say is prose: what was seen, or what to look at.
func (p *page) say(text string) {
	for _, line := range wrap(text, width) {
		p.line(line)
	}
}

// command is what a person types.
func (p *page) command(text string) { p.line(p.paint(green, "$ ") + p.paint(bold, text)) }

// output is what a command printed.
func (p *page) output(text string) {
	for line := range strings.Lines(text) {
		p.line(strings.TrimRight(line, " \n"))
	}
}

func (p *page) row(r row) {
	text := strings.TrimRight(r.String(), " ")
	style := map[string]string{"Blocked": red, "Done": green, "Stepping": yellow}[r.state]
	p.line(strings.Replace(text, r.state, p.paint(style, r.state), 1))
}

func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return append(lines, line)
}

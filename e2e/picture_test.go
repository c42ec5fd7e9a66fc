package e2e

import (
	"cmp"
	"fmt"
	"html"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/gomega"
)

// docs/dashboard.svg shows config/grafana/pawl.json with what the Prometheus of a story really answered: no Grafana is at
// hand where the stories run. make picture draws it anew.

// panel is as much of a Grafana panel as is drawn.
type panel struct {
	Type, Title string
	GridPos     struct{ X, Y, W, H int }
	Targets     []struct{ Expr, LegendFormat string }
	FieldConfig struct{ Defaults struct{ Unit string } }
}

func panels(g Gomega) []panel {
	text, err := os.ReadFile("../config/grafana/pawl.json")
	g.Expect(err).NotTo(HaveOccurred())
	board, err := decode[struct{ Panels []panel }](text)
	g.Expect(err).NotTo(HaveOccurred())
	return board.Panels
}

// spelled is a query without the variables of the dashboard.
func spelled(query string) string {
	return strings.NewReplacer("$__rate_interval", "1m", "$__range", "10m", "$namespace", ".*", "$statefulset", ".*").Replace(query)
}

// curve is one series of an answer to a query about a range of time.
type curve struct {
	Metric map[string]string `json:"metric"`
	Values [][2]any          `json:"values"`
}

func (w *monitoring) curves(expression string, from, to time.Time) []curve {
	ask := url.Values{"query": {spelled(expression)}, "start": {fmt.Sprint(from.Unix())}, "end": {fmt.Sprint(to.Unix())}, "step": {"1"}}
	response, err := http.Get("http://" + w.prometheus + "/api/v1/query_range?" + ask.Encode())
	w.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	w.Expect(err).NotTo(HaveOccurred())
	answer, err := decode[struct{ Data struct{ Result []curve } }](body)
	w.Expect(err).NotTo(HaveOccurred(), "%s", body)
	return answer.Data.Result
}

// picture draws the dashboard from one time to another, and what is of a moment as it was at a third.
func (w *monitoring) picture(file string, from, at, to time.Time) {
	const cell, row, left = 40, 26, 12
	d := &svg{from: from, to: to}
	height := 0
	for _, p := range panels(w) {
		x, y := p.GridPos.X*cell+4, p.GridPos.Y*row+44
		wide, high := p.GridPos.W*cell-8, p.GridPos.H*row-8
		height = max(height, y+high)
		d.box(x, y, wide, high, p.Title)
		switch p.Type {
		case "stat":
			d.stats(x+left, y+50, wide, w.answers(p, at))
		case "table":
			d.table(x+left, y+44, w.answers(p, at))
		default:
			var all []named
			for _, t := range p.Targets {
				for _, c := range w.curves(t.Expr, from, to) {
					all = append(all, named{legend(t.LegendFormat, c.Metric), points(c.Values)})
				}
			}
			all = slices.DeleteFunc(all, named.nothing)
			slices.SortFunc(all, func(a, b named) int { return cmp.Compare(a.name, b.name) })
			if p.Type == "state-timeline" {
				d.lanes(x+left, y+34, wide-2*left, all)
			} else {
				d.lines(x+left, y+34, wide-2*left, high-44, p.FieldConfig.Defaults.Unit, all)
			}
		}
	}
	title := fmt.Sprintf("Pawl: a good image, a bad one, and the revert, %s to %s UTC; numbers and table as of %s; without what is 0",
		from.UTC().Format("15:04:05"), to.UTC().Format("15:04:05"), at.UTC().Format("15:04:05"))
	w.Expect(os.WriteFile(file, []byte(d.page(24*cell+8, height+8, title)), 0o600)).To(Succeed())
}

// answers are those to the queries of a panel at one time.
func (w *monitoring) answers(p panel, at time.Time) []named {
	var all []named
	for _, t := range p.Targets {
		for _, c := range w.curves(t.Expr, at, at) {
			name := legend(t.LegendFormat, c.Metric)
			if p.Type == "table" {
				name = strings.Join([]string{c.Metric["namespace"], c.Metric["statefulset"], c.Metric["reason"], c.Metric["class"], c.Metric["pod"]}, "   ")
			}
			all = append(all, named{name, points(c.Values)})
		}
	}
	return all
}

type named struct {
	name   string
	points []point
}

// nothing reports whether a series is 0 throughout: it is left out.
func (n named) nothing() bool {
	return !slices.ContainsFunc(n.points, func(p point) bool { return p.value != 0 })
}

type point struct {
	at    float64
	value float64
}

func points(values [][2]any) []point {
	var all []point
	for _, v := range values {
		at, _ := v[0].(float64)
		text, _ := v[1].(string)
		if value, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(value) {
			all = append(all, point{at, value})
		}
	}
	return all
}

var placeholder = regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}`)

func legend(format string, metric map[string]string) string {
	return placeholder.ReplaceAllStringFunc(format, func(s string) string { return metric[placeholder.FindStringSubmatch(s)[1]] })
}

// svg is a picture in the making.
type svg struct {
	strings.Builder
	from, to time.Time
}

var colours = []string{"#5794f2", "#73bf69", "#ff9830", "#b877d9", "#37872d", "#e0b400", "#8ab8ff", "#fa6400", "#96d98d", "#c4162a"}

var stateColours = map[string]string{"Done": "#73bf69", "Waiting": "#8ab8ff", "Stepping": "#5794f2", "Blocked": "#f2495c"}

func (d *svg) text(x, y int, size int, colour, s string) {
	fmt.Fprintf(d, `<text x="%d" y="%d" font-size="%d" fill="%s">%s</text>`+"\n", x, y, size, colour, html.EscapeString(s))
}

func (d *svg) box(x, y, wide, high int, title string) {
	fmt.Fprintf(d, `<rect x="%d" y="%d" width="%d" height="%d" rx="3" fill="#fff" stroke="#d0d4da"/>`+"\n", x, y, wide, high)
	if most := (wide - 24) / 7; len(title) > most {
		title = title[:most-1] + "…"
	}
	d.text(x+12, y+20, 13, "#24292e", title)
}

// stats are beside each other, or below each other where there is no room.
func (d *svg) stats(x, y, wide int, all []named) {
	for i, n := range all {
		if len(n.points) == 0 {
			continue
		}
		colour, left, top := cmp.Or(stateColours[n.name], "#24292e"), x+i*110, y
		if wide < 300 {
			left, top = x, y+i*42
		}
		d.text(left, top, 22, colour, strconv.FormatFloat(math.Round(n.points[0].value), 'f', -1, 64))
		d.text(left+24, top, 10, "#6a737d", n.name)
	}
}

func (d *svg) table(x, y int, all []named) {
	d.text(x, y, 11, "#6a737d", "for seconds   namespace   statefulset   reason   class   pod")
	for i, n := range all {
		if len(n.points) > 0 {
			d.text(x, y+20+i*18, 12, "#24292e", fmt.Sprintf("%.0f   %s", n.points[0].value, n.name))
		}
	}
}

// x is the place of a time on an axis.
func (d *svg) x(left, wide int, at float64) float64 {
	return float64(left) + float64(wide)*(at-float64(d.from.Unix()))/d.to.Sub(d.from).Seconds()
}

// lanes draws one line whose colour is the state.
func (d *svg) lanes(x, y, wide int, all []named) {
	for i, n := range all {
		state := n.name[strings.LastIndex(n.name, " ")+1:]
		d.text(x, y+i*40+10, 11, "#6a737d", n.name)
		for _, p := range n.points {
			fmt.Fprintf(d, `<rect x="%.1f" y="%d" width="%.1f" height="16" fill="%s"/>`+"\n",
				d.x(x, wide, p.at), y+i*40+16, float64(wide)/d.to.Sub(d.from).Seconds()+0.5, cmp.Or(stateColours[state], "#999"))
		}
	}
}

func (d *svg) lines(x, y, wide, high int, unit string, all []named) {
	top := 0.0
	for _, n := range all {
		for _, p := range n.points {
			top = max(top, p.value)
		}
	}
	if top == 0 {
		top = 1
	}
	plot := high - 14*((len(all)+1)/2) - 6
	scale := strconv.FormatFloat(top, 'g', 3, 64)
	switch unit {
	case "percentunit":
		scale = fmt.Sprintf("%.0f%%", 100*top)
	case "s":
		scale += " s"
	}
	d.text(x, y+2, 10, "#6a737d", scale)
	fmt.Fprintf(d, `<path d="M%d %dH%d" stroke="#d0d4da"/>`+"\n", x, y+plot, x+wide)
	for i, n := range all {
		var path []string
		for _, p := range n.points {
			path = append(path, fmt.Sprintf("%.1f %.1f", d.x(x, wide, p.at), float64(y+plot)-float64(plot-8)*p.value/top))
		}
		if len(path) > 0 {
			fmt.Fprintf(d, `<path d="M%s" fill="none" stroke="%s" stroke-width="1.5"/>`+"\n", strings.Join(path, "L"), colours[i%len(colours)])
		}
		d.text(x+i%2*(wide/2), y+plot+14+i/2*14, 10, colours[i%len(colours)], n.name)
	}
}

func (d *svg) page(wide, high int, title string) string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif">
<rect width="100%%" height="100%%" fill="#f4f5f5"/>
<text x="12" y="26" font-size="14" fill="#24292e">%s</text>
%s</svg>
`, wide, high, wide, high, html.EscapeString(title), d.String())
}

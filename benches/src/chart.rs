//! Charts as SVG: points and lines on linear or logarithmic axes, with labels next to them.
//!
//! Colours are of middle lightness on a transparent ground, so that a picture can be read on light
//! and dark pages alike; text is large enough for a width of 600 pixels. No series differs from
//! another by its line alone.
#![allow(missing_docs, reason = "self-explanatory fields")]

use std::fmt::{Display, Write};

/// Pixels; pages show pictures at this width or somewhat less.
const WIDTH: f64 = 720.0;
const LEFT: f64 = 66.0;
const LINE: f64 = 18.0;
/// Characters of a line of notes.
const NOTE: usize = 104;
/// Text and axes.
const INK: &str = "#768390";

/// A picture.
#[derive(Clone, Debug)]
pub struct Chart {
    pub title: String,
    /// Below the panels, a paragraph each.
    pub notes: Vec<String>,
    pub panels: Vec<Panel>,
}

/// A pair of axes.
#[derive(Clone, Debug)]
pub struct Panel {
    /// Above it, or nothing.
    pub title: String,
    pub x: Axis,
    pub y: Axis,
    pub series: Vec<Series>,
    /// Pixels of height, without title and axis.
    pub height: f64,
    /// Pixels to the right of the axes, for labels.
    pub right: f64,
}

/// An axis from `min` to `max`.
#[derive(Clone, Debug)]
pub struct Axis {
    pub label: String,
    pub is_log: bool,
    pub min: f64,
    pub max: f64,
    /// Positions of grid lines, and their labels.
    pub ticks: Vec<(f64, String)>,
}

/// Points of one kind.
#[derive(Clone, Debug)]
pub struct Series {
    pub name: String,
    pub colour: &'static str,
    pub points: Vec<Point>,
    pub line: Line,
    pub mark: Mark,
    /// Whether it stands in a list, to the right of the axes or inside in the upper right corner;
    /// else to the right of its last point.
    pub is_listed: bool,
}

/// A point, and where a thin line goes from it.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    pub x: f64,
    pub y: f64,
    /// The `y` of the line's end.
    pub to: f64,
}

/// How points are connected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Line {
    None,
    Thin,
    Thick,
}

/// How a point is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mark {
    None,
    Dot,
    Ring,
    Square,
    /// A full square that stands on a corner.
    Diamond,
}

impl Axis {
    /// A logarithmic axis with a line at each of these that is on it.
    pub fn log(label: &str, (min, max): (f64, f64), ticks: &[f64], unit: &str) -> Self {
        let ticks = ticks.iter().filter(|tick| (min..=max).contains(*tick));
        let ticks = ticks.map(|&tick| (tick, format!("{tick}{unit}"))).collect();
        Axis { label: label.to_owned(), is_log: true, min, max, ticks }
    }

    /// A share of the axis, 0 to 1.
    fn share(&self, value: f64) -> f64 {
        let scale = |value: f64| if self.is_log { value.ln() } else { value };
        (scale(value) - scale(self.min)) / (scale(self.max) - scale(self.min))
    }
}

/// The text of a picture under way.
struct Svg(String);

impl Svg {
    fn put(&mut self, text: impl Display) {
        writeln!(self.0, "{text}").expect("a string takes all");
    }

    fn text(&mut self, (x, y): (f64, f64), style: &str, text: &str) {
        let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        self.put(format_args!("<text x=\"{x:.1}\" y=\"{y:.1}\" {style}>{text}</text>"));
    }

    fn path(&mut self, path: impl Display, colour: &str, style: &str) {
        self.put(format_args!("<path d=\"{path}\" stroke=\"{colour}\" {style}/>"));
    }
}

impl Chart {
    pub fn svg(&self) -> String {
        let panels: f64 = self.panels.iter().map(Panel::full_height).sum();
        let notes: Vec<String> = self.notes.iter().flat_map(|note| wrapped(note)).collect();
        let height = 44.0 + panels + LINE * notes.len() as f64;
        let mut out = Svg(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" \
             width=\"{WIDTH}\" height=\"{height:.0}\" \
             font-family=\"ui-sans-serif, system-ui, sans-serif\" font-size=\"15\" \
             fill=\"{INK}\" role=\"img\" aria-labelledby=\"t\">\n"
        ));
        out.put(format_args!("<title id=\"t\">{}</title>", self.title));
        out.text((8.0, 22.0), "font-size=\"18\" font-weight=\"600\"", &self.title);
        let mut top = 34.0;
        for panel in &self.panels {
            panel.draw(&mut out, top);
            top += panel.full_height();
        }
        for note in &notes {
            top += LINE;
            out.text((8.0, top - 4.0), "font-size=\"13\"", note);
        }
        out.put("</svg>");
        out.0
    }
}

impl Panel {
    fn full_height(&self) -> f64 {
        let lines =
            self.x.ticks.iter().map(|(_, name)| name.split('\n').count()).max().unwrap_or(1);
        self.height + 26.0 + LINE * lines as f64 + if self.title.is_empty() { 0.0 } else { 22.0 }
    }

    fn draw(&self, out: &mut Svg, top: f64) {
        let mut top = top + 10.0;
        if !self.title.is_empty() {
            top += 22.0;
            out.text((LEFT, top - 12.0), "font-weight=\"600\"", &self.title);
        }
        let width = WIDTH - LEFT - self.right;
        let (right, bottom) = (LEFT + width, top + self.height);
        let at_x = |value: f64| LEFT + width * self.x.share(value);
        let at_y = |value: f64| bottom - self.height * self.y.share(value);
        for (value, name) in &self.y.ticks {
            let y = at_y(*value);
            out.path(format_args!("M{LEFT} {y:.1}H{right:.1}"), INK, "stroke-opacity=\"0.25\"");
            out.text((LEFT - 8.0, y + 4.5), "text-anchor=\"end\"", name);
        }
        for (value, name) in &self.x.ticks {
            let x = at_x(*value);
            let path = format!("M{x:.1} {top:.1}V{:.1}", bottom + 5.0);
            out.path(path, INK, "stroke-opacity=\"0.25\"");
            for (number, part) in name.split('\n').enumerate() {
                let y = bottom + 20.0 + 17.0 * number as f64;
                out.text((x, y), "text-anchor=\"middle\"", part);
            }
        }
        // The names of the axes stand inside, where charts leave the corners free.
        out.path(format_args!("M{LEFT} {top:.1}V{bottom:.1}H{right:.1}"), INK, "fill=\"none\"");
        let end = "text-anchor=\"end\" font-style=\"italic\"";
        out.text((right - 6.0, bottom - 8.0), end, &self.x.label);
        out.text((LEFT + 8.0, top + 14.0), "font-style=\"italic\"", &self.y.label);
        let mut listed = top + 16.0;
        let list = if self.right > 100.0 { right + 18.0 } else { right - 290.0 };
        let mut labels: Vec<(f64, f64, &Series)> = Vec::new();
        for series in &self.series {
            let points = series.points.iter();
            let points = points
                .map(|point| (at_x(point.x), at_y(point.y), at_y(point.to).clamp(top, bottom)));
            series.draw(out, &points.collect::<Vec<_>>());
            if series.is_listed {
                let y = listed - 4.5;
                match series.line {
                    Line::None => series.draw(out, &[(list, y, y)]),
                    _ => series.draw(out, &[(list - 12.0, y, y), (list + 12.0, y, y)]),
                }
                series.label(out, list + 20.0, listed);
                listed += LINE + 2.0;
            } else if let Some(point) = series.points.last() {
                labels.push((at_x(point.x), at_y(point.y), series));
            }
        }
        draw_labels(out, labels, bottom);
    }
}

/// Labels at the same place step aside, from top to bottom.
fn draw_labels(out: &mut Svg, mut labels: Vec<(f64, f64, &Series)>, bottom: f64) {
    labels.sort_by(|(_, a, _), (_, b, _)| a.total_cmp(b));
    let mut places: Vec<f64> = Vec::new();
    for &(_, y, _) in &labels {
        let above = places.last().copied().unwrap_or(f64::MIN);
        places.push(y.max(above + LINE));
    }
    // Move labels that were pushed past the bottom up again.
    let mut below = bottom + 4.0 + LINE;
    for y in places.iter_mut().rev() {
        *y = y.min(below - LINE);
        below = *y;
    }
    for (&(x, from, series), y) in labels.iter().zip(places) {
        let path = format!("M{:.1} {from:.1}L{:.1} {y:.1}", x + 6.0, x + 20.0);
        out.path(path, series.colour, "stroke-opacity=\"0.5\"");
        series.label(out, x + 23.0, y + 4.5);
    }
}

impl Series {
    fn label(&self, out: &mut Svg, x: f64, y: f64) {
        let weight = if self.line == Line::Thick { "font-weight=\"600\"" } else { "" };
        out.text((x, y), &format!("fill=\"{}\" {weight}", self.colour), &self.name);
    }

    fn draw(&self, out: &mut Svg, points: &[(f64, f64, f64)]) {
        let colour = self.colour;
        let is_thick = self.line == Line::Thick;
        if self.line != Line::None && !points.is_empty() {
            let path: Vec<_> = points.iter().map(|(x, y, _)| format!("{x:.1} {y:.1}")).collect();
            let style = format!(
                "fill=\"none\" stroke-linejoin=\"round\" stroke-width=\"{}\"",
                if is_thick { 3.5 } else { 1.8 }
            );
            out.path(format_args!("M{}", path.join("L")), colour, &style);
        }
        for &(x, y, to) in points {
            if (y - to).abs() > 1.0 {
                let path = format!("M{x:.1} {y:.1}V{to:.1}");
                out.path(path, colour, "stroke-opacity=\"0.45\"");
            }
            let empty = format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"");
            let circle = format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\"");
            let square = |side: f64| {
                let [x, y] = [x - side / 2.0, y - side / 2.0];
                format!("<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{side}\" height=\"{side}\"")
            };
            let size = if is_thick { 5 } else { 4 };
            out.put(match self.mark {
                Mark::None => continue,
                Mark::Dot => format!("{circle} r=\"{size}\" fill=\"{colour}\"/>"),
                Mark::Ring => format!("{circle} r=\"5\" {empty}/>"),
                Mark::Square => format!("{} {empty}/>", square(11.0)),
                Mark::Diamond => {
                    let turned = format!("transform=\"rotate(45 {x:.1} {y:.1})\"");
                    format!("{} fill=\"{colour}\" {turned}/>", square(7.5))
                }
            });
        }
    }
}

/// The words of a paragraph in lines of at most [`NOTE`] characters, unless a word is longer.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(last) if last.is_empty() => last.push_str(word),
            Some(last) if last.len() + word.len() < NOTE => {
                last.push(' ');
                last.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

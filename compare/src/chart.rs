//! Charts as SVG: points and lines on linear or logarithmic axes, with labels beside them.
//!
//! Colours are of middle lightness on a transparent ground, so that a picture can be read on light and dark pages alike; text is large
//! enough for a width of 600 pixels. No series differs from another by its line alone.

use std::fmt::Write;

/// Pixels; pages show pictures at this width or somewhat less.
const WIDTH: f64 = 720.0;
const LEFT: f64 = 66.0;
const LINE: f64 = 18.0;
/// Characters of a line of notes.
const NOTE: usize = 104;
/// Text and axes.
const INK: &str = "#768390";

pub(crate) struct Chart {
    pub(crate) title: String,
    /// Below the charts, a paragraph each.
    pub(crate) notes: Vec<String>,
    pub(crate) panels: Vec<Panel>,
}

pub(crate) struct Panel {
    pub(crate) title: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<Series>,
    /// Pixels of height, without title and axis.
    pub(crate) height: f64,
    /// Pixels to the right of the axes, for labels.
    pub(crate) right: f64,
}

pub(crate) struct Axis {
    pub(crate) label: String,
    pub(crate) is_log: bool,
    pub(crate) min: f64,
    pub(crate) max: f64,
    /// Where there are lines, and what stands beside them.
    pub(crate) ticks: Vec<(f64, String)>,
}

pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) colour: &'static str,
    pub(crate) points: Vec<Point>,
    pub(crate) line: Line,
    pub(crate) mark: Mark,
    pub(crate) label: Label,
}

#[derive(Clone, Copy)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
    /// A thin line goes from the point to here.
    pub(crate) to: f64,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Line {
    None,
    Thin,
    Thick,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Mark {
    None,
    Dot,
    Ring,
    Square,
    Diamond,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Label {
    /// To the right of the last point.
    Right,
    /// In a list: to the right of the axes if there is space, or inside, in the upper right corner.
    Listed,
}

impl Axis {
    /// A share of the axis, 0 to 1.
    fn share(&self, value: f64) -> f64 {
        let scale = |value: f64| if self.is_log { value.ln() } else { value };
        (scale(value) - scale(self.min)) / (scale(self.max) - scale(self.min))
    }
}

impl Chart {
    pub(crate) fn svg(&self) -> String {
        let panels: f64 = self.panels.iter().map(Panel::full_height).sum();
        let notes: Vec<String> = self.notes.iter().flat_map(|note| wrapped(note)).collect();
        let height = 34.0 + panels + LINE * notes.len() as f64 + 10.0;
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" width=\"{WIDTH}\" \
             height=\"{height:.0}\" font-family=\"ui-sans-serif, system-ui, sans-serif\" font-size=\"15\" \
             fill=\"{INK}\" role=\"img\" aria-labelledby=\"t\">\n"
        );
        line(&mut out, format_args!("<title id=\"t\">{}</title>", escaped(&self.title)));
        line(
            &mut out,
            format_args!(
                "<text x=\"8\" y=\"22\" font-size=\"18\" font-weight=\"600\">{}</text>",
                escaped(&self.title)
            ),
        );
        let mut top = 34.0;
        for panel in &self.panels {
            panel.draw(&mut out, top);
            top += panel.full_height();
        }
        for note in &notes {
            top += LINE;
            line(
                &mut out,
                format_args!(
                    "<text x=\"8\" y=\"{:.1}\" font-size=\"13\">{}</text>",
                    top - 4.0,
                    escaped(note)
                ),
            );
        }
        out.push_str("</svg>\n");
        out
    }
}

impl Panel {
    fn full_height(&self) -> f64 {
        let lines =
            self.x.ticks.iter().map(|(_, name)| name.split('\n').count()).max().unwrap_or(1);
        self.height + 26.0 + LINE * lines as f64 + if self.title.is_empty() { 0.0 } else { 22.0 }
    }

    fn draw(&self, out: &mut String, top: f64) {
        let mut top = top + 10.0;
        if !self.title.is_empty() {
            top += 22.0;
            line(
                out,
                format_args!(
                    "<text x=\"{LEFT}\" y=\"{:.1}\" font-weight=\"600\">{}</text>",
                    top - 12.0,
                    escaped(&self.title)
                ),
            );
        }
        let width = WIDTH - LEFT - self.right;
        let bottom = top + self.height;
        let at_x = |value: f64| LEFT + width * self.x.share(value);
        let at_y = |value: f64| bottom - self.height * self.y.share(value);
        let right = LEFT + width;
        for (value, name) in &self.y.ticks {
            let y = at_y(*value);
            line(
                out,
                format_args!(
                    "<path d=\"M{LEFT} {y:.1}H{right:.1}\" stroke=\"{INK}\" stroke-opacity=\"0.25\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                    LEFT - 8.0,
                    y + 4.5,
                    escaped(name)
                ),
            );
        }
        for (value, name) in &self.x.ticks {
            let x = at_x(*value);
            line(
                out,
                format_args!(
                    "<path d=\"M{x:.1} {top:.1}V{:.1}\" stroke=\"{INK}\" stroke-opacity=\"0.25\"/>",
                    bottom + 5.0
                ),
            );
            for (number, part) in name.split('\n').enumerate() {
                line(
                    out,
                    format_args!(
                        "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                        bottom + 20.0 + 17.0 * number as f64,
                        escaped(part)
                    ),
                );
            }
        }
        // The names of the axes stand inside, where charts leave the corners free.
        line(
            out,
            format_args!(
                "<path d=\"M{LEFT} {top:.1}V{bottom:.1}H{right:.1}\" stroke=\"{INK}\" fill=\"none\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" font-style=\"italic\">{}</text>\
             <text x=\"{:.1}\" y=\"{:.1}\" font-style=\"italic\">{}</text>",
                right - 6.0,
                bottom - 8.0,
                escaped(&self.x.label),
                LEFT + 8.0,
                top + 14.0,
                escaped(&self.y.label)
            ),
        );
        for series in &self.series {
            let points: Vec<_> = series
                .points
                .iter()
                .map(|point| (at_x(point.x), at_y(point.y), at_y(point.to).clamp(top, bottom)))
                .collect();
            series.draw(out, &points);
        }
        self.draw_labels(out, &at_x, &at_y, (top, bottom, right));
    }

    fn draw_labels(
        &self,
        out: &mut String,
        at_x: &dyn Fn(f64) -> f64,
        at_y: &dyn Fn(f64) -> f64,
        (top, bottom, right): (f64, f64, f64),
    ) {
        let mut listed = top + 16.0;
        let list = if self.right > 100.0 { right + 18.0 } else { right - 290.0 };
        let mut labels: Vec<(f64, f64, &Series)> = Vec::new();
        for series in &self.series {
            if series.label == Label::Listed {
                let y = listed - 4.5;
                match series.line {
                    Line::None => series.draw(out, &[(list, y, y)]),
                    _ => series.draw(out, &[(list - 12.0, y, y), (list + 12.0, y, y)]),
                }
                text(out, series, list + 20.0, listed, "start");
                listed += LINE + 2.0;
            } else if let Some(point) = series.points.last() {
                labels.push((at_x(point.x), at_y(point.y), series));
            }
        }
        // Labels at the same place step aside, from top to bottom.
        labels.sort_by(|(_, a, _), (_, b, _)| a.total_cmp(b));
        let mut places: Vec<f64> = Vec::new();
        for &(_, y, _) in &labels {
            let above = places.last().copied().unwrap_or(f64::MIN);
            places.push(y.max(above + LINE));
        }
        // What was pushed out at the bottom goes up again.
        let mut below = bottom + 4.0 + LINE;
        for y in places.iter_mut().rev() {
            *y = y.min(below - LINE);
            below = *y;
        }
        for (&(x, from, series), y) in labels.iter().zip(places) {
            let end = x + 20.0;
            line(
                out,
                format_args!(
                    "<path d=\"M{:.1} {from:.1}L{end:.1} {y:.1}\" stroke=\"{}\" stroke-opacity=\"0.5\"/>",
                    x + 6.0,
                    series.colour
                ),
            );
            text(out, series, end + 3.0, y + 4.5, "start");
        }
    }
}

impl Series {
    fn draw(&self, out: &mut String, points: &[(f64, f64, f64)]) {
        let colour = self.colour;
        if self.line != Line::None && !points.is_empty() {
            let path: Vec<String> =
                points.iter().map(|(x, y, _)| format!("{x:.1} {y:.1}")).collect();
            let style = match self.line {
                Line::Thick => "stroke-width=\"3.5\"",
                _ => "stroke-width=\"1.8\"",
            };
            line(
                out,
                format_args!(
                    "<path d=\"M{}\" stroke=\"{colour}\" fill=\"none\" stroke-linejoin=\"round\" {style}/>",
                    path.join("L")
                ),
            );
        }
        for &(x, y, to) in points {
            if (y - to).abs() > 1.0 {
                line(
                    out,
                    format_args!(
                        "<path d=\"M{x:.1} {y:.1}V{to:.1}\" stroke=\"{colour}\" stroke-opacity=\"0.45\"/>"
                    ),
                );
            }
            let size = if self.line == Line::Thick { 5 } else { 4 };
            match self.mark {
                Mark::None => {}
                Mark::Dot => line(
                    out,
                    format_args!(
                        "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{size}\" fill=\"{colour}\"/>"
                    ),
                ),
                Mark::Ring => line(
                    out,
                    format_args!(
                        "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>"
                    ),
                ),
                Mark::Square => line(
                    out,
                    format_args!(
                        "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"11\" height=\"11\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.8\"/>",
                        x - 5.5,
                        y - 5.5
                    ),
                ),
                Mark::Diamond => line(
                    out,
                    format_args!(
                        "<path d=\"M{x:.1} {:.1}l5 5l-5 5l-5 -5z\" fill=\"{colour}\"/>",
                        y - 5.0
                    ),
                ),
            }
        }
    }
}

fn text(out: &mut String, series: &Series, x: f64, y: f64, anchor: &str) {
    let weight = if series.line == Line::Thick { " font-weight=\"600\"" } else { "" };
    line(
        out,
        format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"{}\" text-anchor=\"{anchor}\"{weight}>{}</text>",
            series.colour,
            escaped(&series.name)
        ),
    );
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(out, "{text}").expect("a string takes all");
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The words of a paragraph in lines of at most [`NOTE`] characters, unless a word is longer.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("there is always one");
        if last.is_empty() {
            last.push_str(word);
        } else if last.len() + word.len() < NOTE {
            last.push(' ');
            last.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

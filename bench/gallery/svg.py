"""Plots as SVG: lines and points on linear or logarithmic axes, several panels side by side."""

import math
from xml.sax.saxutils import escape

COLOURS = ["#0b5fa5", "#c2571a", "#2f7d32", "#7b3fa0", "#8a6d00", "#555555"]
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 380, 300, 56, 12, 30, 44


class Axis:
    """A scale from values to 0 and 1, and its ticks."""

    def __init__(self, values, log=False, least=None, most=None):
        self.log = log
        values = [value for value in values if math.isfinite(value) and (value > 0 or not log)]
        low = least if least is not None else min(values)
        high = most if most is not None else max(values)
        if log:
            self.low, self.high = math.log10(low), math.log10(high)
        else:
            self.low, self.high = low, high
        if self.high <= self.low:
            self.low, self.high = self.low - 0.5, self.high + 0.5

    def at(self, value):
        value = math.log10(max(value, 1e-300)) if self.log else value
        return min(1.05, max(-0.05, (value - self.low) / (self.high - self.low)))

    def ticks(self):
        if self.log:
            ticks = [m * 10.0**p for p in range(math.floor(self.low), math.ceil(self.high) + 1) for m in (1, 2, 5)]
            ticks = [tick for tick in ticks if self.low - 1e-9 <= math.log10(tick) <= self.high + 1e-9]
            return ticks if len(ticks) <= 8 else [tick for tick in ticks if f"{tick:e}"[0] == "1"]
        step = 10.0 ** math.floor(math.log10((self.high - self.low) / 3))
        step *= next(m for m in (1, 2, 5, 10) if (self.high - self.low) / (step * m) <= 6)
        first = math.ceil(self.low / step - 1e-9)
        return [step * k for k in range(first, math.floor(self.high / step + 1e-9) + 1)]


class Panel:
    """A panel of `series`, `(name, [(x, y)], style)` with style `line`, `points`, `dashed` or `cloud`."""

    def __init__(self, title, x, y, series, logs=(False, False), limits=(None, None, None, None)):
        self.title, self.x, self.y, self.series = title, x, y, series
        points = [point for _, points, _ in series for point in points]
        self.across = Axis([point[0] for point in points], logs[0], limits[0], limits[1])
        self.up = Axis([point[1] for point in points], logs[1], limits[2], limits[3])

    def draw(self, left):
        x0, x1, y0, y1 = left + LEFT, left + WIDTH - RIGHT, HEIGHT - BOTTOM, TOP
        across = lambda value: x0 + (x1 - x0) * self.across.at(value)
        up = lambda value: y0 + (y1 - y0) * self.up.at(value)
        text = lambda x, y, word, more="": f'<text x="{x:.1f}" y="{y:.1f}" {more}>{escape(word)}</text>'
        parts = [text((x0 + x1) / 2, 16, self.title, 'text-anchor="middle" font-weight="bold"')]
        for tick in self.up.ticks():
            parts.append(f'<line x1="{x0}" x2="{x1}" y1="{up(tick):.1f}" y2="{up(tick):.1f}" stroke="#dddddd"/>')
            parts.append(text(x0 - 5, up(tick) + 4, f"{tick:g}", 'text-anchor="end"'))
        for tick in self.across.ticks():
            parts.append(f'<line x1="{across(tick):.1f}" x2="{across(tick):.1f}" y1="{y0}" y2="{y0 + 4}" stroke="#888888"/>')
            parts.append(text(across(tick), y0 + 16, f"{tick:g}", 'text-anchor="middle"'))
        parts.append(text((x0 + x1) / 2, HEIGHT - 10, self.x, 'text-anchor="middle"'))
        parts.append(text(left + 12, (y0 + y1) / 2, self.y, f'text-anchor="middle" transform="rotate(-90 {left + 12} {(y0 + y1) / 2})"'))
        parts.append(f'<rect x="{x0}" y="{y1}" width="{x1 - x0}" height="{y0 - y1}" fill="none" stroke="#888888"/>')
        for place, (name, points, style) in enumerate(self.series):
            colour = COLOURS[place % len(COLOURS)]
            points = [(across(x), up(y)) for x, y in points]
            if style == "cloud":
                parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="1.4" fill="{colour}" fill-opacity="0.45"/>' for x, y in points]
            if style in ("line", "dashed"):
                dashes = ' stroke-dasharray="5 4"' if style == "dashed" else ""
                line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
                parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.8"{dashes}/>')
            if style in ("line", "points"):
                parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
            parts.append(f'<rect x="{x1 - 128}" y="{y1 + 6 + 15 * place}" width="10" height="4" fill="{colour}"/>')
            parts.append(text(x1 - 113, y1 + 12 + 15 * place, name))
        return parts


def plot(path, title, panels):
    width = WIDTH * len(panels)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" font-family="sans-serif" font-size="11" role="img">'
        f"<title>{escape(title)}</title>",
        f'<rect width="{width}" height="{HEIGHT}" fill="#ffffff"/>',
    ]
    for place, panel in enumerate(panels):
        parts += panel.draw(place * WIDTH)
    path.write_text("\n".join([*parts, "</svg>"]) + "\n", encoding="utf-8")

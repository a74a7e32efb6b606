/** Pictures as SVG: drawn by hand or by figures, legible on light and on dark, with their words as text. */

/** A colour by what it says; each picture has both sets, and the reader's preference decides. */
export type Tone = 'ground' | 'text' | 'faint' | 'line' | 'plain' | 'ours' | 'other' | 'panel';

const LIGHT: Readonly<Record<Tone, string>> = {
  ground: '#ffffff',
  text: '#1f2328',
  faint: '#57606a',
  line: '#d0d7de',
  plain: '#7d8590',
  ours: '#1a66d1',
  other: '#b35900',
  panel: '#f0f4fa',
};
const DARK: Readonly<Record<Tone, string>> = {
  ground: '#1b1b1f',
  text: '#e6edf3',
  faint: '#9ea7b3',
  line: '#3d444d',
  plain: '#8b949e',
  ours: '#5b9dff',
  other: '#e08b3a',
  panel: '#24272e',
};

/** Text for an attribute or an element. */
export function escaped(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

interface Words {
  readonly x: number;
  readonly y: number;
  readonly text: string;
  readonly tone?: Tone;
  readonly size?: number;
  readonly anchor?: 'start' | 'middle' | 'end';
  readonly weight?: 'bold';
  readonly code?: true;
}

/** A line of text, its baseline at `y`. */
export function words({
  x,
  y,
  text,
  tone = 'text',
  size = 13,
  anchor = 'start',
  weight,
  code,
}: Words): string {
  const classes = [`f-${tone}`, ...(code === true ? ['code'] : [])].join(' ');
  const bold = weight === undefined ? '' : ' font-weight="600"';
  return `<text class="${classes}" x="${x}" y="${y}" font-size="${size}" text-anchor="${anchor}"${bold}>${escaped(text)}</text>`;
}

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  readonly fill: Tone;
  readonly stroke?: Tone;
  readonly radius?: number;
}

export function box({ x, y, width, height, fill, stroke, radius = 0 }: Box): string {
  const classes = [`f-${fill}`, ...(stroke === undefined ? [] : [`s-${stroke}`])].join(' ');
  return `<rect class="${classes}" x="${x}" y="${y}" width="${width}" height="${height}" rx="${radius}"/>`;
}

/** A line with a head at its end, through `points`. */
export function arrow(points: readonly (readonly [number, number])[], tone: Tone = 'plain'): string {
  const path = points.map(([x, y], i) => `${i === 0 ? 'M' : 'L'}${x} ${y}`).join(' ');
  return `<path class="s-${tone}" d="${path}" fill="none" stroke-width="1.5" marker-end="url(#head-${tone})"/>`;
}

/**
 * A whole picture.
 *
 * @param title what it is, in a few words
 * @param about all that it shows, for who cannot see it
 */
export function picture(
  width: number,
  height: number,
  title: string,
  about: string,
  parts: readonly string[],
): string {
  const tones = Object.keys(LIGHT) as Tone[]; // the keys of a literal
  const rules = (set: Readonly<Record<Tone, string>>): string =>
    tones.map((tone) => `.f-${tone}{fill:${set[tone]}}.s-${tone}{stroke:${set[tone]}}`).join('');
  const heads = (['plain', 'ours'] as const)
    .filter((tone) => parts.some((part) => part.includes(`#head-${tone}`)))
    .map(
      (tone) =>
        `<marker id="head-${tone}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path class="f-${tone}" d="M0 0L8 4L0 8z"/></marker>`,
    );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title about" font-family="system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif">`,
    `<title id="title">${escaped(title)}</title>`,
    `<desc id="about">${escaped(about)}</desc>`,
    `<style>text{stroke:none}.code{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}${rules(LIGHT)}@media (prefers-color-scheme:dark){${rules(DARK)}}</style>`,
    ...(heads.length === 0 ? [] : [`<defs>${heads.join('')}</defs>`]),
    box({ x: 0.5, y: 0.5, width: width - 1, height: height - 1, fill: 'ground', stroke: 'line', radius: 8 }),
    ...parts,
    '</svg>',
    '',
  ].join('\n');
}

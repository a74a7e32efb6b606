/** The picture of the spine: one question's way through the rooms of docs/architecture.md. */
import { arrow, box, picture, words } from './svg.js';

interface Step {
  readonly verb: string;
  readonly says: string;
  /** The room that does it, as the table of docs/architecture.md names it. */
  readonly room: string;
}

const SURFACES: readonly (readonly [who: string, room: string])[] = [
  ['psql, BI tools', 'src/surfaces/pg/'],
  ['programs, osl', 'src/surfaces/rest/'],
  ['agents', 'src/surfaces/mcp/'],
];

const BEFORE: readonly Step[] = [
  { verb: 'verify', says: 'whose token it is, and for whom it asks', room: 'policy/' },
  { verb: 'limit', says: 'what they may ask for now, counted once', room: 'src/ask/request/' },
];

/** Within the compiler, which does no input or output. */
const COMPILER: readonly Step[] = [
  { verb: 'parse', says: 'Postgres’ own grammar', room: 'compiler/' },
  { verb: 'bind', says: 'names that this caller may see; others do not exist', room: 'compiler/' },
  { verb: 'govern', says: 'row filter and masks at each table, then proved', room: 'compiler/' },
  { verb: 'emit', says: 'SQL without a byte of the caller’s text', room: 'compiler/' },
];

const AFTER: readonly Step[] = [
  { verb: 'record', says: 'the decision is on disk before a row leaves', room: 'audit/' },
  { verb: 'execute', says: 'by an unprivileged, read-only session', room: 'src/engine/' },
  { verb: 'record', says: 'what came of it', room: 'audit/' },
];

/** The rooms that the picture names. */
export const ROOMS: readonly string[] = [
  ...SURFACES.map(([, room]) => room),
  ...[...BEFORE, ...COMPILER, ...AFTER].map(({ room }) => room),
];

const WIDTH = 520;
const EDGE = 20;
const MIDDLE = WIDTH / 2;
const HEIGHT = 46;
const GAP = 22;
const STEP = HEIGHT + GAP;
const INSET = 14;

/** The picture, as SVG. */
export function spine(): string {
  const parts: string[] = [];
  let y = 34;
  parts.push(words({ x: EDGE, y, text: 'One question’s way', size: 16, weight: 'bold' }));
  y += 16;
  const width = (WIDTH - 2 * EDGE - 2 * 10) / 3;
  for (const [i, [who, room]] of SURFACES.entries()) {
    const x = EDGE + i * (width + 10);
    parts.push(box({ x, y, width, height: HEIGHT, fill: 'panel', stroke: 'line', radius: 6 }));
    parts.push(words({ x: x + width / 2, y: y + 20, text: who, anchor: 'middle', weight: 'bold' }));
    parts.push(
      words({
        x: x + width / 2,
        y: y + 37,
        text: room,
        size: 11.5,
        anchor: 'middle',
        tone: 'faint',
        code: true,
      }),
    );
    const from = x + width / 2;
    parts.push(
      arrow([
        [from, y + HEIGHT],
        [from, y + HEIGHT + 10],
        [MIDDLE, y + HEIGHT + 10],
        [MIDDLE, y + STEP - 2],
      ]),
    );
  }
  y = column(parts, BEFORE, y + STEP, 0);
  const top = y + GAP;
  const edge = column([], COMPILER, top + 30, INSET) + 10;
  const frame = { x: EDGE, y: top, width: WIDTH - 2 * EDGE, height: edge - top, radius: 8 } as const;
  parts.push(down(y, top), box({ ...frame, fill: 'ground', stroke: 'ours' }));
  const said = { y: top + 20, tone: 'faint' } as const;
  parts.push(words({ ...said, x: EDGE + INSET, text: 'the compiler: values in, values out', size: 12 }));
  const room = { text: 'compiler/', size: 11.5, anchor: 'end', code: true } as const;
  parts.push(words({ ...said, ...room, x: WIDTH - EDGE - INSET }));
  column(parts, COMPILER, top + 30, INSET);
  parts.push(down(edge, edge + GAP));
  y = column(parts, AFTER, edge + GAP, 0);
  const end = 'rows go back the way the question came';
  parts.push(words({ x: MIDDLE, y: y + 24, text: end, anchor: 'middle', tone: 'faint' }));
  return picture(WIDTH, y + 42, 'One question’s way through the gateway', inWords(), parts);
}

/** An arrow in the middle, from one edge to another. */
function down(from: number, to: number): string {
  return arrow([
    [MIDDLE, from],
    [MIDDLE, to - 1],
  ]);
}

/** Boxes below each other with arrows between them; the lower edge of the last. */
function column(parts: string[], steps: readonly Step[], from: number, inset: number): number {
  const x = EDGE + inset;
  const width = WIDTH - 2 * x;
  for (const [i, { verb, says, room }] of steps.entries()) {
    const y = from + i * STEP;
    if (i > 0) parts.push(down(y - GAP, y));
    parts.push(box({ x, y, width, height: HEIGHT, fill: 'panel', stroke: 'line', radius: 6 }));
    parts.push(words({ x: x + INSET, y: y + 20, text: verb, size: 14, weight: 'bold', tone: 'ours' }));
    const at = { x: x + width - INSET, y: y + 20, text: room, size: 11.5, anchor: 'end' } as const;
    if (inset === 0) parts.push(words({ ...at, tone: 'faint', code: true }));
    parts.push(words({ x: x + INSET, y: y + 37, text: says }));
  }
  return from + steps.length * STEP - GAP;
}

/** The same for who cannot see it. */
function inWords(): string {
  const surfaces = SURFACES.map(([who, room]) => `${who} (${room})`).join(', ');
  const steps = [...BEFORE, ...COMPILER, ...AFTER].map(
    ({ verb, says, room }) => `${verb}: ${says} (${room})`,
  );
  return `A question comes in from ${surfaces}. Then, one after the other: ${steps.join('; ')}. Rows go back the way the question came.`;
}

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A figure of `bench/RESULTS.md`. */
export interface Measured {
  readonly median: number;
  /** The number in `against`: what the figure is held against. NaN where there is none. */
  readonly against: number;
  readonly n: number;
}

const RESULTS = readFileSync(join(process.cwd(), 'bench', 'RESULTS.md'), 'utf8');

/** The cells of each line of a table in section `name`, or of all tables; throws where there is no such section. */
export function resultRows(name: string | null = null): readonly (readonly string[])[] {
  const text = name === null ? RESULTS : RESULTS.split(`<!-- ${name} -->`)[1]?.split(`<!-- /${name} -->`)[0];
  if (text === undefined) throw new Error(`bench/RESULTS.md has no section ${name}`);
  return text
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .map((line) => line.slice(2, -2).split(' | '));
}

/** The figure `id`. Throws where no bench has written it: what a page says must have been measured. */
export function measured(id: string): Measured {
  const row = resultRows().find((cells) => cells[0] === id);
  if (row === undefined) throw new Error(`bench/RESULTS.md has no figure ${id}`);
  const against = /: ([\d.]+)$/.exec(row[4] ?? '')?.[1];
  return { median: Number(row[1]), against: Number(against ?? Number.NaN), n: Number(row[6]) };
}

/** `.87` */
export function share(id: string): string {
  return measured(id).median.toFixed(2).replace(/^0/, '');
}

/** `21,050` */
export function thousands(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}

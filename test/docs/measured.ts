import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Figure, resultsOf } from '../../site/build/figures.js';

const RESULTS = resultsOf(readFileSync(join(process.cwd(), 'bench', 'RESULTS.md'), 'utf8'));

/** The cells of each line of a table in section `name`, or of all tables; throws where there is no such section. */
export function resultRows(name: string | null = null): readonly (readonly string[])[] {
  return RESULTS.rows(name);
}

/** The figure `id`. Throws where no bench has written it: what a page says must have been measured. */
export function measured(id: string): Figure {
  return RESULTS.figure(id);
}

/** `.87` */
export function share(id: string): string {
  return measured(id).median.toFixed(2).replace(/^0/, '');
}

/** `21,050` */
export function thousands(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}

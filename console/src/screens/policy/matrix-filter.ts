import type { MatrixPage, MatrixRow, Sight } from '../../api/admin-types.js';

/** What of the matrix is wanted. */
export interface MatrixFilter {
  readonly object: string;
  readonly subject: string;
  readonly sees: Sight | '' | 'anything';
  /** Subjects with commas, root first: somebody who acts for somebody. */
  readonly chain: string;
}

export const NO_FILTER: MatrixFilter = { object: '', subject: '', sees: '', chain: '' };

/** The parameters of the request, without pages. */
export function parametersOf({
  object,
  subject,
  sees,
  chain,
}: MatrixFilter): Readonly<Record<string, string>> {
  return {
    object: object.trim(),
    subject: subject.trim(),
    sees: sees === 'anything' ? 'clear,partly_masked,masked,aggregates' : sees,
    chain: membersOf(chain).join(','),
  };
}

/** `user:a > agent:b` or with commas. */
export function membersOf(chain: string): readonly string[] {
  return chain
    .split(/[,>→]/)
    .map((one) => one.trim())
    .filter((one) => one !== '');
}

/** Rows of a page of the matrix. */
export const PAGE_ROWS = 100;

/** Pages of rows as they came, of one filter and one set of subjects. */
export type Pages = ReadonlyMap<number, MatrixPage>;

/** The pages that rows from `first` to before `end` are on, and that are not there yet. */
export function missingPages(pages: Pages, first: number, end: number, rows: number): readonly number[] {
  const last = Math.max(0, Math.min(end, rows) - 1);
  const from = Math.floor(first / PAGE_ROWS);
  const wanted: number[] = [];
  for (let page = from; page <= Math.floor(last / PAGE_ROWS); page += 1)
    if (!pages.has(page)) wanted.push(page);
  return rows === 0 ? [] : wanted;
}

/** The row at a place; null while its page has not come. */
export function rowAt(pages: Pages, index: number): MatrixRow | null {
  return pages.get(Math.floor(index / PAGE_ROWS))?.rows[index % PAGE_ROWS] ?? null;
}

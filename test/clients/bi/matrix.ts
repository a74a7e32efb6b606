export interface Tally {
  readonly name: string;
  readonly how: 'captured' | 'script';
  readonly statements: number;
  readonly equal: number;
  readonly excepted: number;
  readonly refused: number;
  readonly wrong: number;
}

const START = '<!-- matrix: OSL_WRITE_DOCS=1 node dist/test/clients/bi/bi.test.js -->\n';
const END = '<!-- end of matrix -->';

/** A Markdown table, one line a client or tool; counts are of answers, two a statement. */
export function matrixOf(tallies: readonly Tally[]): string {
  const cells = [
    ['client or tool', 'source', 'statements', 'equal', 'differs by version', 'refused', 'wrong'],
    ...tallies.map((t) => [t.name, t.how, t.statements, t.equal, t.excepted, t.refused, t.wrong].map(String)),
  ];
  const widths = (cells[0] ?? []).map((_, i) => Math.max(...cells.map((row) => row[i]?.length ?? 0)));
  const line = (row: readonly string[]): string =>
    `| ${row.map((cell, i) => (i < 2 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))).join(' | ')} |`;
  const rule = `| ${widths.map((w, i) => (i < 2 ? '-'.repeat(w) : `${'-'.repeat(w - 1)}:`)).join(' | ')} |`;
  const [head = [], ...rows] = cells;
  return [line(head), rule, ...rows.map(line)].join('\n');
}

/** `page` with `matrix` between its two marks. */
export function withMatrix(page: string, matrix: string): string {
  const [from, to] = [page.indexOf(START), page.indexOf(END)];
  if (from < 0 || to < from) throw new Error('docs/bi.md has no place for the matrix');
  return `${page.slice(0, from + START.length)}\n${matrix}\n\n${page.slice(to)}`;
}

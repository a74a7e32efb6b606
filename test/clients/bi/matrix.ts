import { KINDS, type Kind } from './corpus.js';
import type { Grade } from './grade.js';
import type { Measured } from './measure.js';

const GRADES: readonly Grade[] = ['equal', 'refused', 'wrong'];

const START = '<!-- matrix: OSL_WRITE_DOCS=1 node dist/test/clients/bi/bi.test.js -->\n';
const END = '<!-- end of matrix -->';

/** The table of `docs/bi.md`, and below it what is refused, by what the gateway says. */
export function reportOf(all: readonly Measured[]): string {
  const tools = [...new Set(all.map((m) => m.tool))];
  const rows = [
    ...tools.map((tool) =>
      row(
        tool,
        all.filter((m) => m.tool === tool),
      ),
    ),
    row('**all**', all),
  ];
  const heads = KINDS.flatMap((kind) => GRADES.map((g, i) => (i === 0 ? `${kind}: ${g}` : g)));
  const head = ['client or tool', 'source', 'statements', ...heads];
  const rule = head.map((_, i) => (i < 2 ? '---' : '---:'));
  const table = [head, rule, ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
  return `${table}\n\n${figuresOf(all)}\n\n${refusalsOf(all)}`;
}

function row(name: string, of: readonly Measured[]): readonly string[] {
  const sources = [...new Set(of.map((m) => m.source))].sort().join(', ');
  const count = (kind: Kind, grade: Grade): string => {
    const n = of.filter((m) => m.kind === kind && m.grade === grade).length;
    return of.some((m) => m.kind === kind) ? String(n) : '';
  };
  const counts = KINDS.flatMap((kind) => GRADES.map((grade) => count(kind, grade)));
  return [name, name === '**all**' ? '' : sources, String(of.length), ...counts];
}

function figuresOf(all: readonly Measured[]): string {
  const refused = all.filter((m) => m.grade === 'refused').length;
  const wrong = all.filter((m) => m.grade === 'wrong').length;
  const analysts = all.filter((m) => m.source === 'analysts').length;
  const percent = ((refused / all.length) * 100).toFixed(1);
  return `Of ${all.length} statements, ${analysts} of them analysts', ${refused} are refused (${percent} %) and ${wrong} wrong.`;
}

/** How many the page says are refused, which a run may not exceed. */
export function refusedOnPage(page: string): number {
  return Number(/, (\d+) are refused \(/.exec(page)?.[1] ?? Number.NaN);
}

function refusalsOf(all: readonly Measured[]): string {
  const groups = new Map<string, Measured[]>();
  for (const m of all.filter((m) => m.grade !== 'equal')) {
    const kind = m.reason ?? m.said;
    groups.set(kind, [...(groups.get(kind) ?? []), m]);
  }
  const lines = [...groups]
    .sort(([a, x], [b, y]) => y.length - x.length || (a < b ? -1 : 1))
    .map(
      ([why, of]) => `- ${why} (${of.length}): ${of.map((m) => `${m.tool}: ${named(m.what)}`).join('; ')}`,
    );
  return lines.length === 0 ? 'Nothing is refused.' : `What is refused, and why:\n\n${lines.join('\n')}`;
}

/** A captured statement is called by its own beginning. */
function named(what: string): string {
  const [, number, text = ''] = /^(\d+), (.*)$/.exec(what) ?? [];
  return number === undefined ? what : `no. ${number}, \`${text.slice(0, 40).replaceAll('`', '')}\``;
}

/** `page` with `report` between its two marks. */
export function withMatrix(page: string, report: string): string {
  const [from, to] = [page.indexOf(START), page.indexOf(END)];
  if (from < 0 || to < from) throw new Error('docs/bi.md has no place for the matrix');
  return `${page.slice(0, from + START.length)}\n${report}\n\n${page.slice(to)}`;
}

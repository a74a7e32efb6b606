import { CLASSES } from './attacks/index.js';
import type { AttackOutcome, AttackVerdict } from './judge.js';
import { countsOf, type EndpointRun } from './run.js';

/** The runs as a table in Markdown: leaks of each class (– if it has no form for any), and other outcomes in all. */
export function markdown(runs: readonly EndpointRun[]): string {
  const head = [
    'endpoint',
    ...CLASSES,
    'leaks',
    'refused',
    'not expressible',
    'noise',
    'questions answered',
    'seconds',
  ];
  const lines = runs.map((run) => {
    const counts = countsOf(run);
    const leaks = CLASSES.map((of) => {
      const { leak = 0, 'not expressible': no = 0 } = counts.get(of) ?? {};
      const attacks = run.verdicts.filter((v) => v.attack.class === of).length;
      return leak > 0 ? `**${leak}**` : attacks === 0 ? '' : no === attacks ? '–' : '0';
    });
    const sum = (outcome: AttackOutcome): string =>
      String(run.verdicts.filter((v) => v.outcome === outcome).length);
    const questions = [...run.usable.values()];
    const total = (of: 'answered' | 'of'): number => questions.reduce((n, count) => n + count[of], 0);
    const rest = [sum('leak'), sum('refused'), sum('not expressible'), sum('noise')];
    return [run.name, ...leaks, ...rest, `${total('answered')} of ${total('of')}`, run.seconds.toFixed(0)];
  });
  const rows = [head, head.map(() => '---'), ...lines];
  return `${rows.map((cells) => `| ${cells.join(' | ')} |`).join('\n')}\n`;
}

/** The runs as JSON, each leak with its statements and both answers. */
export function json(runs: readonly EndpointRun[]): object {
  return runs.map(({ verdicts, usable, ...run }) => ({
    ...run,
    usable: Object.fromEntries(usable),
    attacks: verdicts.map(({ attack, outcome, seen }) => ({
      ...attack,
      outcome,
      ...(seen !== null && { seen }),
    })),
  }));
}

const STYLE = `
:root { color-scheme: light dark; --ink: #1d2430; --dim: #5d6775; --line: #d9dee5; --paper: #fff; --panel: #f5f7f9;
  --leak: #b3261e; --refused: #b9c2cc; --no: #e3e7ec; --noise: #c79a2b; --fine: #3d7a5a; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ee; --dim: #9aa4b1; --line: #343b46; --paper: #14181e;
  --panel: #1c2129; --leak: #f2786d; --refused: #4b5563; --no: #2a303a; --noise: #d9b04a; --fine: #5fae85; } }
body { margin: 0 auto; max-width: 76rem; padding: 2rem 1.25rem 4rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; } h2 { font-size: 1.1rem; margin: 2.5rem 0 .75rem; }
p { margin: .25rem 0; color: var(--dim); max-width: 46rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; } th, td { padding: .35rem .45rem; text-align: left; vertical-align: top; }
thead th { border-bottom: 1px solid var(--line); font-weight: 600; }
tbody th { font-weight: 500; min-width: 9rem; } tbody tr + tr > * { border-top: 1px solid var(--line); }
td { color: var(--dim); font-variant-numeric: tabular-nums; } td b { color: var(--leak); }
.bar { display: flex; height: 6px; margin-top: 3px; min-width: 3.6rem; background: var(--panel); border-radius: 3px; overflow: hidden; }
.bar i { display: block; height: 100%; } .leak { background: var(--leak); } .refused { background: var(--refused); }
.no { background: var(--no); } .noise { background: var(--noise); } .answered { background: var(--fine); }
.totals { display: grid; grid-template-columns: max-content 1fr max-content; gap: .35rem .75rem; align-items: center; }
.totals .bar { margin: 0; height: 10px; }
.key { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; font-size: 13px; color: var(--dim); margin: .75rem 0; }
.key i { display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin-right: .4rem; }
details { border: 1px solid var(--line); border-radius: 6px; margin: .4rem 0; padding: .4rem .75rem; }
summary { cursor: pointer; overflow-wrap: anywhere; } summary code { margin-left: .5rem; }
code, pre { font: 12.5px/1.45 ui-monospace, monospace; }
pre { background: var(--panel); padding: .5rem .65rem; border-radius: 4px; white-space: pre-wrap; overflow-wrap: anywhere; margin: .4rem 0; }
`;

/** The runs as a page that needs nothing else: leaks of each class, answered questions, and each leak with its answers. */
export function page(runs: readonly EndpointRun[]): string {
  const day = new Date().toISOString().slice(0, 10);
  return `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>leakbench</title><style>${STYLE}</style>
<h1>leakbench</h1>
<p>${day}. Attacks asked in worlds that differ only in what the caller may not see. A leak is an attack whose answers differ.</p>
<h2>Leaks, and legitimate questions answered</h2>
${totals(runs)}
<h2>By class</h2>
${KEY}
${table(runs)}
<h2>Each leak</h2>
${runs.map(leaks).join('')}
</html>
`;
}

const KEY = `<div class="key">${[
  ['leak', 'leak'],
  ['noise', 'noise: equal worlds differ'],
  ['answered', 'answered alike'],
  ['refused', 'refused alike'],
  ['no', 'not expressible'],
]
  .map(([name, text]) => `<span><i class="${name}"></i>${text}</span>`)
  .join('')}</div>`;

function totals(runs: readonly EndpointRun[]): string {
  const leaksOf = ({ verdicts }: EndpointRun): number => verdicts.filter((v) => v.outcome === 'leak').length;
  const most = Math.max(1, ...runs.map(leaksOf));
  const rows = runs.map((run) => {
    const counts = [...run.usable.values()];
    const sum = (of: 'answered' | 'of'): number => counts.reduce((n, count) => n + count[of], 0);
    const leaks = leaksOf(run);
    const bar = `<div class="bar"><i class="leak" style="width:${percent(leaks, most)}"></i></div>`;
    const text = `${leaks} of ${run.verdicts.length} leak · ${sum('answered')} of ${sum('of')} answered · ${run.seconds.toFixed(0)} s`;
    return `<span>${escaped(run.name)}</span>${bar}<span>${text}</span>`;
  });
  return `<div class="totals">${rows.join('\n')}</div>`;
}

function table(runs: readonly EndpointRun[]): string {
  const head = CLASSES.map((of) => `<th>${of}</th>`).join('');
  const rows = runs.map((run) => {
    const counts = countsOf(run);
    const cells = CLASSES.map((of) => cell(counts.get(of))).join('');
    return `<tr><th>${escaped(run.name)}</th>${cells}</tr>`;
  });
  return `<div class="scroll"><table><thead><tr><th>endpoint</th>${head}</tr></thead><tbody>${rows.join('\n')}</tbody></table></div>`;
}

/** Outcomes in the order of their bar, with the class of their color. */
const BAR: readonly (readonly [AttackOutcome, string])[] = [
  ['leak', 'leak'],
  ['noise', 'noise'],
  ['answered', 'answered'],
  ['refused', 'refused'],
  ['not expressible', 'no'],
];

/** The number of leaks, over a bar of all outcomes. */
function cell(counts: Readonly<Record<AttackOutcome, number>> | undefined): string {
  const all = counts === undefined ? 0 : BAR.reduce((sum, [outcome]) => sum + counts[outcome], 0);
  if (counts === undefined || all === 0) return '<td></td>';
  const parts = BAR.filter(([outcome]) => counts[outcome] > 0);
  const bar = parts.map(
    ([outcome, name]) => `<i class="${name}" style="width:${percent(counts[outcome], all)}"></i>`,
  );
  const title = parts.map(([outcome]) => `${counts[outcome]} ${outcome}`).join(', ');
  const number = counts.leak > 0 ? `<b>${counts.leak}</b>` : counts['not expressible'] === all ? '–' : '0';
  return `<td title="${title}">${number}<div class="bar">${bar.join('')}</div></td>`;
}

function leaks({ name, what, verdicts }: EndpointRun): string {
  const found = verdicts.filter((v) => v.outcome === 'leak');
  if (found.length === 0) return '';
  return `<details><summary>${escaped(name)}: ${found.length}</summary><p>${escaped(what)}</p>${found.map(leak).join('')}</details>\n`;
}

function leak({ attack, seen }: AttackVerdict): string {
  const { id, steps, before = [], source, defence } = attack;
  const asked = [...before.map((step) => `others: ${step}`), ...steps].join(';\n');
  return `<details><summary>${id}<code>${escaped(steps.at(-1) ?? '')}</code></summary>
<p>${escaped(source)}. Stopped if ${escaped(defence)}.</p>
<pre>${escaped(asked)}</pre><pre>a  ${escaped(cut(seen?.a))}</pre><pre>b  ${escaped(cut(seen?.b))}</pre></details>`;
}

/** Characters of an answer that are shown. */
const SHOWN = 1_500;

function cut(text = ''): string {
  return text.length > SHOWN ? `${text.slice(0, SHOWN)} …` : text;
}

const percent = (part: number, all: number): string => `${((100 * part) / all).toFixed(1)}%`;

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
}

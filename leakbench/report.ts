import { CLASSES } from './attacks/index.js';
import type { Outcome } from './judge.js';
import { countsOf, type Run } from './run.js';

/** The runs as a table in Markdown: leaks of each class (– if it has no form for any), and other outcomes in all. */
export function markdown(runs: readonly Run[]): string {
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
    const sum = (outcome: Outcome): string =>
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
export function json(runs: readonly Run[]): object {
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

import { CLASSES } from './attacks/index.js';
import { countsOf, type Run } from './run.js';

/** The runs as a table in Markdown: leaks of each class, and which share of legitimate questions was answered. */
export function markdown(runs: readonly Run[]): string {
  const head = ['class', 'attacks', ...runs.map((run) => run.name)];
  const lines = CLASSES.map((of) => {
    const attacks = runs[0]?.verdicts.filter((v) => v.attack.class === of).length ?? 0;
    const cells = runs.map((run) => {
      const { leak = 0, refused = 0, noise = 0, 'not expressible': no = 0 } = countsOf(run).get(of) ?? {};
      const more = [
        ...(refused > 0 ? [`${refused} refused`] : []),
        ...(no > 0 ? [`${no} not expressible`] : []),
        ...(noise > 0 ? [`${noise} noise`] : []),
      ];
      return `${leak === 0 ? '0' : `**${leak}**`}${more.length === 0 ? '' : ` (${more.join(', ')})`}`;
    });
    return [of, String(attacks), ...cells];
  });
  const total = runs.map((run) => String(run.verdicts.filter((v) => v.outcome === 'leak').length));
  const usable = runs.map((run) => {
    const all = [...run.usable.values()];
    const sum = (of: 'answered' | 'of'): number => all.reduce((n, counts) => n + counts[of], 0);
    return `${sum('answered')} of ${sum('of')}`;
  });
  const attacks = String(runs[0]?.verdicts.length ?? 0);
  const rows = [
    head,
    head.map(() => '---'),
    ...lines,
    ['**leaks in all**', attacks, ...total],
    ['legitimate questions answered', '', ...usable],
    ['seconds', '', ...runs.map((run) => run.seconds.toFixed(0))],
  ];
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

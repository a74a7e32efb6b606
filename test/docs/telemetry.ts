import { supervisorMetrics } from '../../cli/workers/supervisor.js';
import type { HttpParts } from '../../src/surfaces/http/telemetry.js';
import { startRest } from '../surfaces/rest/fixture.js';

/** A metric as `/metrics` has it. */
export interface Metric {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly labels: readonly string[];
}

const FIGURE = 0;
const LINEAGE: HttpParts['lineage'] = {
  note: () => null,
  stats: () => ({
    endpoints: {
      catalog: {
        pending: FIGURE,
        dead: FIGURE,
        delivered: FIGURE,
        failed: FIGURE,
        dropped: FIGURE,
        disabled: FIGURE,
      },
    },
    read: FIGURE,
    restarts: FIGURE,
  }),
};

/** Every metric of a server that tells of lineage and of one with workers, by name; each was asked for something. */
export async function metricsOfServer(): Promise<ReadonlyMap<string, Metric>> {
  const rest = await startRest({ embedded: true, serve: (service) => ({ ...service, lineage: null }) });
  const told = await startRest({
    embedded: true,
    // Only its figures are read: nobody is told of lineage here.
    serve: (service) => ({ ...service, lineage: LINEAGE as typeof service.lineage }),
  });
  try {
    await rest.ask('user:ann', { osql: 'select id from osl.entities.order' });
    await rest.ask('user:ann', { osql: 'select nonsense' });
    const supervisor = supervisorMetrics(() => ({ workers: 2, serving: 2, replaced: 0, engines: 1 }));
    const pages = [
      (await rest.send('/metrics')).text,
      (await told.send('/metrics')).text,
      pageIn(await supervisor()),
    ];
    return metricsIn(pages);
  } finally {
    await rest.close();
    await told.close();
  }
}

/** As much of a page as names need. */
function pageIn(figures: string): string {
  const metrics = JSON.parse(figures) as readonly { name: string; type: string; help: string }[];
  return metrics.map((m) => `# HELP ${m.name} ${m.help}\n# TYPE ${m.name} ${m.type}`).join('\n');
}

function metricsIn(pages: readonly string[]): ReadonlyMap<string, Metric> {
  const found = new Map<string, Metric>();
  for (const page of pages) {
    for (const [, name = '', help = '', type = ''] of page.matchAll(
      /^# HELP (osl_\w+) (.*)\n# TYPE \w+ (\w+)$/gm,
    )) {
      const labels = new Set(found.get(name)?.labels ?? []);
      for (const [, within = ''] of page.matchAll(
        new RegExp(`^${name}(?:_bucket|_sum|_count)?\\{(.*)\\} `, 'gm'),
      ))
        for (const [, label = ''] of within.matchAll(/(\w+)="/g)) if (label !== 'le') labels.add(label);
      found.set(name, { name, type, help, labels: [...labels] });
    }
  }
  return found;
}

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parser } from '@prometheus-io/lezer-promql';
import t from 'tap';
import { parse } from 'yaml';
import { ROOT } from '../tools/cli/support.js';
import { metricsOfServer } from './telemetry.js';

t.setTimeout(120_000);

/** The dashboard and the alert rules of `deploy/`, held to what a server tells. */

interface Target {
  readonly expr: string;
}

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly runbook: string };
}

const dashboard = JSON.parse(readFileSync(join(ROOT, 'deploy/grafana/osl-gateway.json'), 'utf8')) as {
  readonly panels: readonly { readonly title: string; readonly targets: readonly Target[] }[];
};
const alerts = parse(readFileSync(join(ROOT, 'deploy/alerts.yaml'), 'utf8')) as {
  readonly groups: readonly { readonly rules: readonly Rule[] }[];
};
const rules = alerts.groups.flatMap((group) => group.rules);
const expressions: readonly (readonly [where: string, expr: string])[] = [
  ...dashboard.panels.flatMap(({ title, targets }) => targets.map(({ expr }) => [title, expr] as const)),
  ...rules.map(({ alert, expr }) => [alert, expr] as const),
];

/** Values that Grafana puts in the place of its variables. */
function plain(expr: string): string {
  return expr.replaceAll('$__rate_interval', '5m').replaceAll('$job', 'osl');
}

/** Names that are selected, each with the labels that it is matched or grouped by; null where it is no PromQL. */
function selectorsIn(
  expr: string,
): readonly { readonly name: string; readonly labels: readonly string[] }[] | null {
  const found: { name: string; labels: string[] }[] = [];
  let sound = true;
  parser.parse(expr).iterate({
    enter: ({ type, node, from, to }) => {
      if (type.isError) sound = false;
      if (type.name !== 'VectorSelector') return;
      const text = expr.slice(from, to);
      const name = node.getChild('Identifier');
      const labels = [...text.matchAll(/(\w+)\s*(?:=~|!~|!=|=)\s*"/g)].map(([, label = '']) => label);
      found.push({ name: name === null ? text : expr.slice(name.from, name.to), labels });
    },
  });
  return sound ? found : null;
}

/** Those that Prometheus adds to every series. */
const ADDED = ['job', 'instance'];
const OF_EVERY_NODE = /^(process|nodejs)_/;

t.test(
  'every expression is PromQL over metrics that a server tells, with labels that they have',
  async (t) => {
    const metrics = await metricsOfServer();
    t.ok(expressions.length > 40);
    for (const [where, expr] of expressions) {
      const selectors = selectorsIn(plain(expr));
      if (selectors === null) {
        t.fail(`${where}: no PromQL: ${expr}`);
        continue;
      }
      t.ok(selectors.length > 0, where);
      const known = new Set([...ADDED, 'le']);
      for (const { name, labels } of selectors) {
        if (OF_EVERY_NODE.test(name)) continue;
        const metric = metrics.get(name) ?? metrics.get(name.replace(/_(bucket|sum|count)$/, ''));
        t.ok(metric !== undefined, `${where}: there is ${name}`);
        if (name.endsWith('_bucket') || name.endsWith('_sum'))
          t.equal(metric?.type, 'histogram', `${where}: ${name}`);
        const own = [...ADDED, ...(metric?.labels ?? [])];
        for (const label of own) known.add(label);
        for (const label of labels) t.ok(own.includes(label), `${where}: ${name} has ${label}`);
      }
      for (const [, group = ''] of expr.matchAll(/\b(?:by|without)\s*\(([^)]*)\)/g))
        for (const label of group.split(',')) t.ok(known.has(label.trim()), `${where}: grouped by ${label}`);
    }
    t.equal(selectorsIn('sum(rate(osl_x[5m])'), null, 'what is no PromQL is found');
  },
);

t.test('every alert says how bad it is, what it means, and where to read on', (t) => {
  for (const { alert, labels, annotations } of rules) {
    t.match(labels.severity, /^(page|ticket)$/, alert);
    t.ok(annotations.summary.length > 10, alert);
    const [file = '', anchor] = annotations.runbook.split('#');
    const page = readFileSync(join(ROOT, file), 'utf8');
    const anchors = [...page.matchAll(/^#+ (.+)$/gm)].map(([, title = '']) => anchorOf(title));
    if (anchor !== undefined) t.ok(anchors.includes(anchor), `${alert}: ${annotations.runbook}`);
  }
  t.equal(new Set(rules.map(({ alert }) => alert)).size, rules.length);
  t.end();
});

/** As GitHub makes it. */
function anchorOf(title: string): string {
  return title
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');
}

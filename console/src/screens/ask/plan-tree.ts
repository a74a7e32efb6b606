/** A step of a plan for display: a title, facts as short texts, and the steps below it. */
export interface PlanTreeNode {
  readonly title: string;
  readonly facts: readonly PlanFact[];
  readonly below: readonly PlanTreeNode[];
}

interface PlanFact {
  readonly text: string;
  readonly tone: 'plain' | 'masked' | 'filtered';
}

interface ExplainStep {
  readonly step?: unknown;
  readonly detail?: unknown;
  readonly inputs?: unknown;
}

/** Converts the plan from `explain: true` to short texts. Unknown members are shown by name and value. */
export function planTree(plan: ExplainStep): PlanTreeNode {
  const detail = isRecord(plan.detail) ? plan.detail : {};
  const inputs = Array.isArray(plan.inputs) ? plan.inputs.filter(isRecord) : [];
  return {
    title: [plan.step, detail['object'] ?? detail['facet']]
      .filter((part) => typeof part === 'string')
      .join(' '),
    facts: Object.entries(detail).flatMap(([name, value]) => factOf(name, value)),
    below: inputs.map(planTree),
  };
}

function factOf(name: string, value: unknown): readonly PlanFact[] {
  if (name === 'object' || name === 'facet' || value === false || value === null || value === 0) return [];
  if (name === 'columns') return columnFacts(value);
  if (name === 'row_filter')
    return value === 'none' ? [] : [{ text: 'only rows that your grants allow', tone: 'filtered' }];
  if (name === 'guarded') return [{ text: 'hidden rows are guarded against errors', tone: 'plain' }];
  if (name === 'fenced') return [{ text: 'fenced', tone: 'plain' }];
  if (name === 'minimum_group_size')
    return [{ text: `groups of at least ${String(value)}`, tone: 'filtered' }];
  if (value === true) return [{ text: words(name), tone: 'plain' }];
  const shown = typeof value === 'object' ? JSON.stringify(value) : String(value);
  return [{ text: `${words(name)}: ${shown}`, tone: 'plain' }];
}

function columnFacts(value: unknown): readonly PlanFact[] {
  if (!Array.isArray(value)) return [{ text: `${String(value)} columns`, tone: 'plain' }];
  const masked = value
    .filter(isRecord)
    .filter((column) => typeof column['masked'] === 'string' && column['masked'] !== 'none');
  const clear = value.flatMap((column) =>
    typeof column === 'string'
      ? [column]
      : isRecord(column) && !masked.includes(column)
        ? [String(column['name'])]
        : [],
  );
  return [
    ...(clear.length > 0 ? [{ text: clear.join(', '), tone: 'plain' } as const] : []),
    ...masked.map(
      ({ name, masked: how }): PlanFact => ({
        text: `${String(name)} ${how === 'all' ? 'masked' : 'masked in some rows'}`,
        tone: 'masked',
      }),
    ),
  ];
}

function words(name: string): string {
  return name.replaceAll('_', ' ');
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

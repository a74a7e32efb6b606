import { type Dashboard, type DashboardReading, fileOf, LONGEST_LINK, readDashboard } from './dashboard.js';
import type { FileProblem } from './file-reader.js';

/** Address of a dashboard that is kept in this browser, or that the server lists, by its title. */
export function addressOf(kind: 'dashboard' | 'shared', title: string): string {
  return `#/metrics?${new URLSearchParams({ [kind]: title })}`;
}

/** Link that contains a dashboard. It follows `#`, so it is not sent to any server. */
export function linkTo(dashboard: Dashboard, origin: string): string {
  const file = JSON.stringify(fileOf(dashboard));
  return `${origin}/console/#/metrics?${new URLSearchParams({ view: file })}`;
}

/** The dashboard that an address names or contains. */
export type DashboardPlace =
  /** The address is not that of a dashboard. */
  | { readonly kind: 'none' }
  | { readonly kind: 'missing'; readonly title: string }
  | { readonly kind: 'refused'; readonly problems: readonly FileProblem[] }
  | { readonly kind: 'found'; readonly dashboard: Dashboard; readonly isKept: boolean };

/** Finds the dashboard of an address; `shared` are those that the server lists. */
export function dashboardAt(
  parameters: URLSearchParams,
  kept: readonly Dashboard[],
  shared: readonly Dashboard[],
): DashboardPlace {
  const view = parameters.get('view');
  if (view !== null) return linked(view);
  for (const [name, all] of [
    ['dashboard', kept],
    ['shared', shared],
  ] as const) {
    const title = parameters.get(name);
    if (title === null) continue;
    const dashboard = all.find((one) => one.title === title);
    return dashboard === undefined
      ? { kind: 'missing', title }
      : { kind: 'found', dashboard, isKept: name === 'dashboard' };
  }
  return { kind: 'none' };
}

function linked(text: string): DashboardPlace {
  if (text.length > LONGEST_LINK) {
    const problem = `has more than ${LONGEST_LINK.toLocaleString('en')} characters`;
    return { kind: 'refused', problems: [{ at: '', text: problem }] };
  }
  const reading: DashboardReading = readDashboard(text);
  return reading.kind === 'read' ? { kind: 'found', dashboard: reading.dashboard, isKept: false } : reading;
}

import { useState } from 'react';
import type { DashboardList } from '../../../../../clients/typescript/types.js';
import { getJson } from '../../../api/http.js';
import { type LoadState, useLoad } from '../../../parts/load/useLoad.js';
import { useSession } from '../../../shell/session.js';
import {
  type Dashboard,
  type DashboardReading,
  dashboardIn,
  type FileProblem,
  fileOf,
  LONGEST_LINK,
  readDashboard,
} from './dashboard.js';

/** Storage for dashboards: the browser's `Storage`, or a substitute. */
type DashboardStorage = Pick<Storage, 'getItem' | 'setItem'>;

/** Maximum number of dashboards of a caller in one browser. */
const MOST = 100;

function keyFor(caller: string): string {
  return `osl.dashboards ${caller}`;
}

/** Returns the caller's dashboards in this browser, sorted by title. Invalid entries are ignored. */
export function readShelf(shelf: DashboardStorage, caller: string): readonly Dashboard[] {
  try {
    const read: unknown = JSON.parse(shelf.getItem(keyFor(caller)) ?? '[]');
    if (!Array.isArray(read)) return [];
    return read.flatMap((content: unknown) => {
      const reading = dashboardIn(content);
      return reading.kind === 'read' ? [reading.dashboard] : [];
    });
  } catch {
    return [];
  }
}

/** Stores dashboards; returns false if the browser cannot store them or has run out of space. */
function writeShelf(shelf: DashboardStorage, caller: string, all: readonly Dashboard[]): boolean {
  try {
    shelf.setItem(keyFor(caller), JSON.stringify(all.map(fileOf)));
    return true;
  } catch {
    return false;
  }
}

/** Stores a dashboard, replacing any with the same title. Returns why it could not; null if it is stored. */
export function saveTo(shelf: DashboardStorage, caller: string, dashboard: Dashboard): string | null {
  const all = readShelf(shelf, caller);
  const others = all.filter(({ title }) => title !== dashboard.title);
  if (others.length === all.length && all.length >= MOST)
    return `This browser keeps at most ${MOST} dashboards: delete one first.`;
  const next = [...others, dashboard].toSorted((a, b) => a.title.localeCompare(b.title));
  return writeShelf(shelf, caller, next) ? null : 'This browser cannot store it.';
}

export interface DashboardShelf {
  readonly dashboards: readonly Dashboard[];
  /** Stores a dashboard. Returns why it could not, in a sentence for the user; null if it is stored. */
  save(dashboard: Dashboard): string | null;
  forget(title: string): void;
}

/** Dashboards of a caller that are kept in this browser. */
export function useShelf(caller: string): DashboardShelf {
  const [dashboards, setDashboards] = useState(() => readShelf(localStorage, caller));
  // Another tab may have changed the dashboards in the meantime.
  const now = (): readonly Dashboard[] => readShelf(localStorage, caller);
  return {
    dashboards,
    save: (dashboard) => {
      const fault = saveTo(localStorage, caller, dashboard);
      setDashboards(now());
      return fault;
    },
    forget: (title) => {
      const others = now().filter((one) => one.title !== title);
      writeShelf(localStorage, caller, others);
      setDashboards(now());
    },
  };
}

/** Dashboards that the server lists for the caller's roles. */
export function useSharedDashboards(): LoadState<readonly Dashboard[]> {
  const { caller } = useSession();
  return useLoad('dashboards', async (signal) => {
    const { dashboards } = await getJson<DashboardList>(caller, '/osl/dashboards', { signal });
    return dashboards.flatMap((content) => {
      const reading = dashboardIn(content);
      return reading.kind === 'read' ? [reading.dashboard] : [];
    });
  });
}

/** Returns a dashboard's address: `dashboard` if this browser keeps it, `shared` if the server lists it. */
export function addressOf(kind: 'dashboard' | 'shared', title: string): string {
  return `#/metrics?${new URLSearchParams({ [kind]: title })}`;
}

/** Returns a link that contains a dashboard. The content follows `#`, so it is not sent to any server. */
export function linkTo(dashboard: Dashboard, origin: string): string {
  const file = JSON.stringify(fileOf(dashboard));
  return `${origin}/console/#/metrics?${new URLSearchParams({ view: file })}`;
}

/** The dashboard that an address names or contains. */
export type DashboardPlace =
  /** The address neither names nor contains a dashboard. */
  | { readonly kind: 'none' }
  | { readonly kind: 'missing'; readonly title: string }
  | { readonly kind: 'refused'; readonly problems: readonly FileProblem[] }
  | { readonly kind: 'found'; readonly dashboard: Dashboard; readonly isKept: boolean };

/** Finds the dashboard that an address names or contains; `shared` are those that the server lists. */
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

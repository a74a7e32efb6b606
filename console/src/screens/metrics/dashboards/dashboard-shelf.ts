import { useCallback, useState } from 'react';
import { type Dashboard, dashboardIn, fileOf } from './dashboard.js';

/** Storage for dashboards: the browser's `Storage`, or a substitute. */
export type DashboardStorage = Pick<Storage, 'getItem' | 'setItem'>;

const MOST = 100;

function keyFor(caller: string): string {
  return `osl.dashboards ${caller}`;
}

/** Dashboards of a caller that are kept in this browser, sorted by title; content that is none is ignored. */
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

/** Adds a dashboard, replacing the one of the same title. */
export function withDashboard(all: readonly Dashboard[], dashboard: Dashboard): readonly Dashboard[] {
  const others = all.filter(({ title }) => title !== dashboard.title);
  return [...others, dashboard].toSorted((a, b) => a.title.localeCompare(b.title)).slice(0, MOST);
}

export interface DashboardShelf {
  readonly dashboards: readonly Dashboard[];
  /** Returns false if the browser cannot store it. */
  save(dashboard: Dashboard): boolean;
  forget(title: string): void;
}

/** Dashboards of a caller that are kept in this browser. */
export function useShelf(caller: string): DashboardShelf {
  const [dashboards, setDashboards] = useState(() => readShelf(localStorage, caller));
  const change = useCallback(
    (make: (now: readonly Dashboard[]) => readonly Dashboard[]): boolean => {
      // Another tab may have changed them in the meantime.
      const next = make(readShelf(localStorage, caller));
      setDashboards(next);
      return writeShelf(localStorage, caller, next);
    },
    [caller],
  );
  return {
    dashboards,
    save: (dashboard) => change((now) => withDashboard(now, dashboard)),
    forget: (title) => void change((now) => now.filter((one) => one.title !== title)),
  };
}

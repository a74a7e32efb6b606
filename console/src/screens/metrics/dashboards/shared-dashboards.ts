import { useMemo } from 'react';
import type { DashboardList } from '../../../../../clients/typescript/types.js';
import type { SignedInCaller } from '../../../api/caller.js';
import { getJson } from '../../../api/http.js';
import { useAnswer } from '../../../parts/thread/queryable-thread.js';
import { type Dashboard, dashboardIn } from './dashboard.js';

/** Dashboards that the server lists for the caller's roles; null while they are loading, none if that fails. */
export function useSharedDashboards(caller: SignedInCaller): readonly Dashboard[] | null {
  const find = useMemo(() => () => load(caller), [caller]);
  const { answer, fault } = useAnswer(find);
  return answer ?? (fault === null ? null : NONE);
}

const NONE: readonly Dashboard[] = [];

async function load(caller: SignedInCaller): Promise<readonly Dashboard[]> {
  const { dashboards } = await getJson<DashboardList>(caller, '/osl/dashboards');
  return dashboards.flatMap((content) => {
    const reading = dashboardIn(content);
    return reading.kind === 'read' ? [reading.dashboard] : [];
  });
}

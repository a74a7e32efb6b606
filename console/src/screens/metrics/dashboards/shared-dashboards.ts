import type { DashboardList } from '../../../../../clients/typescript/types.js';
import { getJson } from '../../../api/http.js';
import { type LoadState, useLoad } from '../../../parts/load/useLoad.js';
import { useSession } from '../../../shell/session.js';
import { type Dashboard, dashboardIn } from './dashboard.js';

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

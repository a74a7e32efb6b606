import type { ServiceLog } from '../base/log.js';
import { messageOf } from '../base/thrown.js';
import { ControlConflict, openControl, shareVersions } from '../control/index.js';
import type { Publishing, Sealed } from '../publishing/store/index.js';
import { gatewayName } from './control.js';
import type { Seat } from './seat.js';
import type { Settings } from './settings.js';

/** Shorter than the silence after which a gateway stops: who publishes has the turn. ms */
const STATEMENT_MS = 2_000;

/** How a process publishes for all gateways; nothing is to be done where there are no others. */
export function sharing(
  { control }: Settings,
  seat: Seat,
  tenant: string,
  log: ServiceLog,
): { readonly share: Publishing['share']; close(): Promise<void> } {
  if (control === null) return { share: async () => 'shared', close: async () => undefined };
  const database = openControl(control.place, { connections: 1, statementMs: STATEMENT_MS });
  const share = async ({ version, bytes }: Sealed): Promise<'shared' | 'outdated' | 'unavailable'> => {
    const { number, id, parent } = version;
    try {
      await shareVersions(
        database,
        tenant,
        [{ number, id, parent, bytes }],
        gatewayName(),
        seat.activation(),
      );
      return 'shared';
    } catch (error) {
      if (error instanceof ControlConflict) return 'outdated';
      log.error('nothing was published: the control database did not take it', { cause: messageOf(error) });
      return 'unavailable';
    }
  };
  return { share, close: () => database.close() };
}

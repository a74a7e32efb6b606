import type { Revocation } from '../../policy/index.js';
import { ControlConflict, openControl, shareRevocation, shareVersions } from '../base/control/index.js';
import type { ServiceLog } from '../base/log.js';
import { messageOf } from '../base/thrown.js';
import type { PublicationStore } from '../model/versions/index.js';
import { gatewayName } from './control.js';
import type { ProcessFiles } from './seat.js';
import type { Settings } from './settings.js';

/** Shorter than the silence after which a gateway stops: who publishes has the turn. ms */
const STATEMENT_MS = 2_000;

/** How a process tells all gateways; nothing is to be done where there are no others. */
export interface GatewaySharing {
  readonly publish: PublicationStore['share'];
  /** False where the control database did not take it; null where there are no other gateways. */
  readonly revoke: ((revocation: Revocation) => Promise<boolean>) | null;
  close(): Promise<void>;
}

/** As the settings say, of what `tenant` is. */
export function sharing(
  { control }: Settings,
  seat: ProcessFiles,
  tenant: string,
  log: ServiceLog,
): GatewaySharing {
  if (control === null) return { publish: async () => 'shared', revoke: null, close: async () => undefined };
  const database = openControl(control.place, { connections: 1, statementMs: STATEMENT_MS });
  const publish: PublicationStore['share'] = async ({ version, bytes }) => {
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
  const revoke = async (revocation: Revocation): Promise<boolean> => {
    try {
      await shareRevocation(database, tenant, revocation, gatewayName());
      return true;
    } catch (error) {
      log.error('other gateways do not know yet what was revoked', { cause: messageOf(error) });
      return false;
    }
  };
  return { publish, revoke, close: () => database.close() };
}

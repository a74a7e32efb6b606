import { randomUUID } from 'node:crypto';
import { queryError } from 'osl-compiler';
import {
  createWireServer,
  fatal,
  type Handler,
  type WireOptions,
  type WireServer,
} from '../../wire/index.js';
import type { Service } from '../service.js';
import { login, recordRefusal } from '../spine/session.js';
import { PgSession } from './session.js';
import { SessionSettings } from './settings.js';
import { wireError } from './wire-error.js';

/** The one database that the wire shows. */
export const DATABASE = 'osl';

export type PgOptions = Omit<WireOptions, 'onInternalError'>;

/** The Postgres frontend: the protocol of `wire/` in front of the spine. */
export function createPgFrontend(service: Service, options: PgOptions = {}): WireServer {
  return createWireServer(
    {
      ...options,
      onInternalError: (cause) =>
        service.log.error('internal error on the wire', {
          error: cause instanceof Error ? (cause.stack ?? cause.message) : String(cause),
        }),
    },
    handlerOf(service),
  );
}

function handlerOf(service: Service): Handler {
  return {
    async authenticate({ user, database, password, parameters, remoteAddress }, control) {
      const requestId = randomUUID();
      try {
        const identity = await login(service, { requestId, surface: 'wire', user, token: password });
        if (database !== DATABASE)
          throw fatal('3D000', `database "${database}" does not exist`, {
            hint: `connect to database ${DATABASE}`,
          });
        return new PgSession(service, identity, new SessionSettings(user, parameters), control);
      } catch (failure) {
        await slowDown(service, remoteAddress);
        throw wireError(failure, requestId, '', 'FATAL');
      }
    },
    refused: ({ kind, sqlstate, remoteAddress }) => {
      void recordOne(service, remoteAddress, kind, sqlstate);
    },
  };
}

/** A peer that keeps failing is told so. */
async function slowDown(service: Service, address: string): Promise<void> {
  const taken = await service.limiter.takeAddress(address);
  if (!taken.ok)
    throw wireError(
      queryError('rateLimited', { retryAfterSeconds: taken.retryAfterSeconds }),
      randomUUID(),
      '',
      'FATAL',
    );
}

/** Traffic of nobody in particular is limited per address before it reaches the log. */
async function recordOne(
  service: Service,
  address: string,
  kind: string,
  sqlstate: string | null,
): Promise<void> {
  const taken = await service.limiter.takeAddress(address);
  if (taken.ok)
    recordRefusal(service, { requestId: randomUUID(), surface: 'wire' }, `wire ${kind}`, sqlstate);
}

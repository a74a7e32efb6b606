import { StartProblem } from '../../base/start-problem.js';

/** Where the listener for who runs the server is; a port that is null is not opened. */
export interface AdminSettings {
  readonly host: string;
  readonly httpPort: number | null;
  readonly pgPort: number | null;
}

interface Read {
  /** A whole number of 0 to 65,535; null where the variable is not set. @throws StartProblem */
  port(name: string): number | null;
  readonly host: string | undefined;
  /** Whether there is a certificate. */
  readonly hasTls: boolean;
}

/** @throws StartProblem where tokens would leave the machine in the clear */
export function adminSettings({ port, host, hasTls }: Read): AdminSettings {
  const settings: AdminSettings = {
    host: host === undefined || host === '' ? '127.0.0.1' : host,
    httpPort: port('OSL_ADMIN_PORT'),
    pgPort: port('OSL_ADMIN_PG_PORT'),
  };
  const listens = settings.httpPort !== null || settings.pgPort !== null;
  if (listens && !hasTls && !isThisMachine(settings.host))
    throw new StartProblem(
      `OSL_ADMIN_HOST is ${settings.host}, which other machines reach: set OSL_TLS_CERT and OSL_TLS_KEY, or leave it at 127.0.0.1`,
    );
  return Object.freeze(settings);
}

/** Whether no other machine reaches `host`. */
export function isThisMachine(host: string): boolean {
  return /^(127(\.\d+){3}|::1|localhost)$/.test(host);
}

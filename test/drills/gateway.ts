import { mkdirSync } from 'node:fs';
import { mintToken } from '../../policy/index.js';
import { tenantKeys } from '../../src/service/keys.js';
import { Server } from '../tools/cli/support.js';

export interface GatewayOptions {
  readonly number: number;
  readonly dataDir: string;
  readonly keysDir: string;
  readonly manifest: string;
  readonly env: Readonly<Record<string, string>>;
}

/** A gateway of a drill: the real command, in a process of its own. */
export class DrillGateway {
  readonly number: number;
  readonly dataDir: string;
  readonly #options: GatewayOptions;
  server: Server;

  constructor(options: GatewayOptions) {
    this.number = options.number;
    this.dataDir = options.dataDir;
    this.#options = options;
    mkdirSync(options.dataDir, { recursive: true });
    this.server = this.#start();
  }

  #start(): Server {
    const { manifest, dataDir, env, keysDir } = this.#options;
    return new Server(['serve', '--json', '--manifest', manifest], dataDir, {
      OSL_KEYS_DIR: keysDir,
      ...env,
    });
  }

  async listening(): Promise<void> {
    await this.server.said('"event":"listening"');
  }

  async restart(): Promise<void> {
    this.server = this.#start();
    await this.listening();
  }

  token(subject: string, lifetimeSeconds = 300): Promise<string> {
    return tokenOf(this.dataDir, this.#options.keysDir, subject, lifetimeSeconds);
  }

  port(name: 'httpPort' | 'pgPort' | 'adminPort'): number {
    return Number(this.server.record()[name]);
  }
}

/** A token of the gateways' own key. An admin's is good for one change. */
export function tokenOf(
  dataDir: string,
  keysDir: string,
  subject: string,
  lifetimeSeconds = 300,
): Promise<string> {
  const role = subject.replace('user:', '');
  const rights = role === 'admin' ? { aclRoles: ['load'], roles: ['TENANT_ADMIN'] } : { aclRoles: [role] };
  return mintToken(
    { tenant: 'demo', chain: [subject], lifetimeSeconds, ...rights },
    { algorithm: 'HS256', secret: tenantKeys(dataDir, keysDir).signing },
  );
}

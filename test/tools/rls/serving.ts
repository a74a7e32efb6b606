import { join } from 'node:path';
import { mintToken } from '../../../policy/index.js';
import { tenantKeys } from '../../../src/service/keys.js';
import { openService } from '../../../src/service/open.js';
import { settingsFrom } from '../../../src/service/settings.js';
import { createHttpServer } from '../../../src/surfaces/http/server.js';

export interface Serving {
  /** The rows of an answer, or the code of a refusal. */
  ask(
    subject: string,
    osql: string,
  ): Promise<{ readonly rows: readonly Record<string, unknown>[] | null; readonly code: string }>;
  close(): Promise<void>;
}

/** Serves the two files of a folder over REST, in this process. @param env variables of the connectors */
export async function servingFiles(dir: string, env: Readonly<Record<string, string>>): Promise<Serving> {
  Object.assign(process.env, env);
  const dataDir = join(dir, 'data');
  const files = { manifestFile: join(dir, 'manifest.yaml'), policyFile: join(dir, 'policy.yaml'), dataDir };
  const silent = { info: () => undefined, warn: () => undefined, error: () => undefined };
  const open = await openService(settingsFrom({}, dir, files), silent);
  const server = await createHttpServer(open.service, {});
  const { port } = await server.listen(0, '127.0.0.1');
  const roles = open.service.model().snapshot?.subjects ?? new Map();
  return {
    async ask(subject, osql) {
      const token = await mintToken(
        { tenant: open.service.tenant, chain: [subject], aclRoles: [...(roles.get(subject)?.ceiling ?? [])] },
        { algorithm: 'HS256', secret: tenantKeys(dataDir).signing },
      );
      const reply = await fetch(`http://127.0.0.1:${port}/osl/query`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ osql }),
      });
      const body = (await reply.json()) as { rows?: Record<string, unknown>[]; code?: string };
      return { rows: body.rows ?? null, code: body.code ?? '' };
    },
    close: async () => {
      await server.close(1_000);
      await open.close();
    },
  };
}

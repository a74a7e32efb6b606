import { indexContent } from '../../../src/service/indexing/index-content.js';
import type { OpenService } from '../../../src/service/open.js';
import type { Service } from '../../../src/service/service.js';
import { settingsFrom } from '../../../src/service/settings.js';
import {
  type Caller,
  type Frontends,
  listAt,
  memberAt,
  postQuery,
  startFrontends,
  WireClient,
} from '../../support/frontends.js';
import { startTestService, type TestService, type TestServiceOptions } from '../../support/service.js';
import { SHOP_MANIFEST } from '../../support/shop.js';

/** Response of REST. */
export interface Answer {
  readonly status: number;
  /** E-code of a refusal; empty where there is none. */
  readonly code: string;
  readonly message: string;
  readonly requestId: string;
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  /** Types of the columns. */
  readonly types: readonly string[];
  readonly json: unknown;
  /** Every byte, headers included. */
  readonly raw: Buffer;
}

/** A service with both frontends, whose content is indexed. */
export interface Forms {
  readonly test: TestService;
  readonly fronts: Frontends;
  /** `POST /osl/query`; data roles are the subject's ceiling. */
  ask(subject: string, osql: string, more?: Readonly<Record<string, unknown>>): Promise<Answer>;
  wire(subject: string): Promise<WireClient>;
  /** Brings the stores up to date. */
  reindex(): Promise<void>;
  close(): Promise<void>;
}

/**
 * On the embedded engine where there is content: it brings pgvector.
 *
 * @param serve the service that is served, made of the real one
 */
export async function startForms(
  options: TestServiceOptions,
  serve: (service: Service) => Service = (service) => service,
): Promise<Forms> {
  const hasContent = options.postgres === undefined && /^facets:/m.test(options.manifest ?? SHOP_MANIFEST);
  const test = await startTestService({ ...options, embedded: options.embedded === true || hasContent });
  const fronts = await startFrontends({ ...test.open, service: serve(test.service) });
  const content = options.settings?.content ?? settingsFrom({}, '/').content;
  const reindex = async (): Promise<void> => {
    const { service, open } = test;
    await indexContent(service.model().manifest, open.databases, content, [], () => undefined);
  };
  await reindex();
  const callerOf = (subject: string): Caller => ({ subject, aclRoles: ceilingOf(test.open, subject) });
  const clients: WireClient[] = [];
  return {
    test,
    fronts,
    reindex,
    async ask(subject, osql, more = {}) {
      const authorization = `Bearer ${await fronts.token(callerOf(subject))}`;
      const { status, outcome, json, raw, requestId, types } = await postQuery(
        fronts.httpPort,
        { osql, ...more },
        { authorization },
        osql,
      );
      const refused = outcome.kind === 'refused' ? outcome : null;
      return {
        status,
        code: refused?.code ?? '',
        message: refused?.message ?? '',
        requestId: requestId ?? '',
        rows: listAt(json, 'rows').map((r) => r as Readonly<Record<string, unknown>>), // rows are objects
        types,
        json,
        raw,
      };
    },
    async wire(subject) {
      const token = await fronts.token(callerOf(subject));
      const client = await WireClient.login(fronts.pgPort, subject, token);
      clients.push(client);
      return client;
    },
    async close() {
      for (const client of clients) client.end();
      await fronts.stop();
      await test.close();
    },
  };
}

function ceilingOf(open: OpenService, subject: string): readonly string[] {
  return [...(open.service.model().snapshot?.subjects.get(subject)?.ceiling ?? [])];
}

/** A member of a jsonb value. */
export function at(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>((v, key) => memberAt(v, key), value);
}

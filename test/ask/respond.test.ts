import { randomUUID } from 'node:crypto';
import { InternalError, type QueryError, queryError, ready } from 'osl-compiler';
import { type Test, test } from 'tap';
import { openAuditLog, readRecords } from '../../audit/index.js';
import { Identity, type IdentityClaims } from '../../policy/identity.js';
import { Approvals, compileSnapshot, createLimiter, DEFAULT_LIMITS } from '../../policy/index.js';
import {
  type AnswerSteps,
  authorize,
  type Decision,
  ForeignFault,
  type RequestCall,
  type RequestParts,
  respond,
} from '../../src/ask/index.js';
import { callerAs } from '../../src/ask/request/identify.js';
import { RequestObserver } from '../../src/ask/request/meters.js';
import { createRefusalThrottle } from '../../src/ask/request/probes.js';
import { SealedValue } from '../../src/ask/request/sealed.js';
import { parseManifest, parsePolicyDocument } from '../../src/model/manifest/index.js';
import { ServedModel } from '../../src/model/served-model.js';
import { mintIdentity } from '../policy/tokens.js';
import { inOneMoment } from '../support/moment.js';
import { SHOP_MANIFEST, SHOP_POLICY } from '../support/shop.js';

await ready();

const manifest = parseManifest(SHOP_MANIFEST, 'shop.yaml');
const { document } = parsePolicyDocument(SHOP_POLICY, 'policy.yaml');
const { tenant } = document;
const snapshot = compileSnapshot(document, manifest.catalog, tenant);
const file = { document: { version: 1, connectors: {}, entities: {} }, version: manifest.version } as const;
const served = new ServedModel({ tenant, manifest, snapshot, file, published: null });
const issuedAt = Math.floor(Date.now() / 1_000);
const ANN = mintIdentity({
  tenant,
  subject: 'user:ann',
  chain: ['user:ann'],
  roles: [],
  aclRoles: ['analyst'],
  issuedAt,
  expiresAt: issuedAt + 600,
  tokenId: 'token-1',
});

/** Requests, with what the caller hears and what the log has of each. */
interface Case {
  readonly request?: Partial<Decision<string> & AnswerSteps<string, string>>;
  readonly call?: Partial<RequestCall>;
  readonly model?: ServedModel;
  /** The answer, or the error. */
  readonly hears: string;
  readonly log: readonly string[];
}

class Spoken extends ForeignFault {
  readonly code = '22P02';
}

const refusal = (): never => {
  throw queryError('noAccess', {});
};
const crash = (): never => {
  throw new TypeError('a fault of ours');
};

const CASES: Readonly<Record<string, Case>> = {
  'what is decided is answered': { hears: 'decided, answered', log: ['probe allow', 'probe ok, 0 rows'] },
  'the outcome says what the answer counts': {
    request: { countRows: () => ({ rows: 7, truncated: true }) },
    hears: 'decided, answered',
    log: ['probe allow', 'probe truncated, 7 rows'],
  },
  'who is not permitted is refused before anything is decided': {
    request: { requireAllowed: refusal, decide: crash },
    hears: 'E2102',
    log: ['probe deny E2102'],
  },
  'what cannot be decided is refused': {
    request: { decide: refusal },
    hears: 'E2102',
    log: ['probe deny E2102'],
  },
  'a fault of ours is told by its request alone': {
    request: { decide: crash },
    hears: 'E5000',
    log: ['probe error E5000'],
  },
  'an answer that fails has an outcome': {
    request: { answer: crash },
    hears: 'E5000',
    log: ['probe allow', 'probe error E5000, 0 rows'],
  },
  'an answer that fails after its asker has gone was cancelled': {
    request: { answer: crash, signal: AbortSignal.abort() },
    hears: 'E5000',
    log: ['probe allow', 'probe cancelled E5000, 0 rows'],
  },
  'a foreign fault is told as it is, and the log has its code': {
    request: {
      decide: () => {
        throw new Spoken('said elsewhere');
      },
    },
    hears: 'said elsewhere',
    log: ['probe error 22P02'],
  },
  'without a policy nothing is decided': {
    model: served.underPolicy(null),
    request: { decide: crash },
    hears: 'E2001',
    log: ['probe error E2001'],
  },
  'a stranger is refused without a word about the question': {
    call: { credentials: { kind: 'bearer', token: 'x.y.z', address: '10.0.0.1' } },
    request: { decide: crash },
    hears: 'E3001',
    log: ['probe deny E3001'],
  },
  'what waits for its turn is decided in it': {
    request: { inTurn: async (work) => work() },
    hears: 'decided, answered',
    log: ['probe allow', 'probe ok, 0 rows'],
  },
};

/** The parts of a service that a request goes through, all of them real: no engine, no compiler, no surface. */
async function startParts(t: Test, model = served) {
  const dir = t.testdir();
  const audit = await openAuditLog({ dir, tenant });
  const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
  const observing = new RequestObserver(log, 0);
  const parts: RequestParts = {
    tenant,
    model: () => model,
    verifier: {
      cached: () => null,
      verify: () => Promise.reject(queryError('invalidToken', { reason: 'signature' })),
    },
    revoked: { has: () => false, follow: () => () => undefined },
    approvals: new Approvals(),
    tableAttributes: { needs: () => false, complete: async (caller) => caller },
    controls: new SealedValue({
      recording: { tenant, audit, lineage: null, log, observing },
      limiter: createLimiter({ limits: { ...DEFAULT_LIMITS, sample: 2 } }),
    }),
    refusals: createRefusalThrottle({ tenant, audit, log }),
    log,
    observing,
  };
  /** Returns the entries of a call in the log, once it is closed. */
  const recorded = async ({ requestId }: RequestCall): Promise<readonly string[]> => {
    await audit.close();
    const said: string[] = [];
    for await (const r of readRecords(dir)) {
      if (r.request_id !== requestId) continue;
      const code = r.code === null ? '' : ` ${r.code}`;
      said.push(
        `${r.action} ${r.decision ?? r.outcome}${code}${r.kind === 'outcome' ? `, ${r.rows} rows` : ''}`,
      );
    }
    return said;
  };
  return { parts, audit, recorded };
}

function callOf(more: Partial<RequestCall> = {}): RequestCall {
  return {
    requestId: randomUUID(),
    surface: 'rest',
    credentials: { kind: 'session', identity: ANN },
    ...more,
  };
}

function requestOf(more: Case['request'] = {}): Decision<string> & AnswerSteps<string, string> {
  return {
    action: 'probe',
    bucket: 'query',
    decide: () => 'decided',
    answer: (decided) => `${decided}, answered`,
    ...more,
  };
}

function heard(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return 'code' in error && !(error instanceof ForeignFault) ? (error as QueryError).code : error.message;
}

test('each request takes one way', async (t) => {
  for (const [name, { request, call: more, model, hears, log }] of Object.entries(CASES))
    await t.test(name, async (t) => {
      const { parts, recorded } = await startParts(t, model);
      const call = callOf(more);
      t.equal(await respond(parts, call, requestOf(request)).catch(heard), hears);
      t.strictSame(await recorded(call), log);
    });
});

test('nothing is answered before the decision is on record, and nothing at all where it cannot be', async (t) => {
  const { parts, audit } = await startParts(t);
  await audit.close();
  for (const overlaps of [false, true]) {
    let begun = false;
    const answer = async (_: string, __: unknown, recorded: Promise<void>): Promise<string> => {
      begun = true;
      await recorded;
      return 'told';
    };
    t.equal(
      await respond(parts, callOf(), requestOf({ answer, mayStartEarly: overlaps })).catch(heard),
      'E5030',
    );
    t.equal(begun, overlaps, 'it has begun only where its answer waits for the record by itself');
  }
  const overlaps = true;
  t.equal(
    await respond(parts, callOf(), requestOf({ mayStartEarly: overlaps })).catch(heard),
    'E5030',
    'even where it forgets to',
  );
});

test('a request counts once, and is refused beyond its limit', async (t) => {
  const { parts, recorded } = await startParts(t);
  const heardOf = (call: RequestCall) => respond(parts, call, requestOf({ bucket: 'sample' })).catch(heard);
  const calls = [callOf(), callOf(), callOf()];
  const all: string[] = [];
  await inOneMoment(async () => {
    for (const call of calls) all.push(await heardOf(call));
  });
  t.strictSame(all, ['decided, answered', 'decided, answered', 'E4290']);
  t.strictSame(await recorded(calls[2] ?? callOf()), ['probe error E4290']);
});

test('a request that was considered goes on, or is settled, or is another one', async (t) => {
  let model = served;
  const { parts, recorded } = await startParts(t, model);
  const changing = { ...parts, model: () => model };
  const call = callOf();
  const considered = await authorize(changing, call, requestOf());
  t.equal(considered.isContinuedBy(call), true);
  t.equal(considered.isContinuedBy(callOf()), false, 'another request');
  t.equal(
    considered.isContinuedBy({ ...call, credentials: { kind: 'session', identity: mintIdentity(ANN) } }),
    false,
  );
  model = served.underPolicy(compileSnapshot(document, manifest.catalog, tenant));
  t.equal(considered.isContinuedBy(call), false, 'another policy');
  await considered.suspend().finish();
  t.strictSame(await recorded(call), ['probe allow', 'probe ok, 0 rows']);
});

test('an identity that nobody verified is refused, whatever it is cast to', async (t) => {
  const { parts } = await startParts(t, served);
  const nobody = { setIdentity: () => undefined, setDetail: () => undefined };
  const made = Identity as unknown as new (claims: IdentityClaims, key: symbol) => Identity;
  const own = { ...ANN, subject: 'user:bob', chain: ['user:bob'] };
  t.equal(callerAs(parts, ANN, nobody, callOf()).identity, ANN);
  for (const forged of [own, Object.assign(Object.create(Identity.prototype), own)])
    t.throws(() => callerAs(parts, forged as Identity, nobody, callOf()), InternalError);
  t.throws(() => new made(own, Symbol('identity')), InternalError);
  t.throws(
    () => Object.assign(ANN, { subject: 'user:bob' }),
    TypeError,
    'and a verified one does not change',
  );
});

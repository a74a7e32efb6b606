import { setImmediate } from 'node:timers/promises';
import { queryError, WAYS } from 'osl-compiler';
import type { PolicySnapshot } from '../../policy/index.js';
import { type Unread, upstreamOf, upstreamsOf } from '../ask/graph/upstream.js';
import { answered, type Caller, counted, refuse, type Versions, versionsOf } from '../ask/index.js';
import { Ledger } from '../ask/ledger.js';
import type { Call } from '../ask/question.js';
import {
  type Candidate,
  candidateFor,
  candidatesIn,
  tableKey,
  type UpstreamSchema,
} from '../model/discovery/index.js';
import { EMPTY_OVERLAY, type Manifest } from '../model/manifest/index.js';
import type { Service } from '../service/service.js';
import { type Judgement, type Proposal, type Suggestion, shortName } from './authoring/index.js';
import type { Served } from './drafting/index.js';

/** What the databases hold beyond the manifest. */
export interface Candidates {
  readonly candidates: readonly Candidate[];
  /** Connectors whose catalog could not be read. */
  readonly unread: readonly Unread[];
  /** Some database has more relations than are read. */
  readonly truncated: boolean;
}

/** An answer about drafts, with the versions that it rests on. */
export type Judged<T> = T & { readonly versions: Versions };

/** One of three things to make a draft of; a table and a candidate are written `connector.schema.table`. */
export interface Wish {
  readonly kind: 'candidate' | 'table' | 'term';
  readonly name: string;
}

/** Lists what is not adopted. @throws QueryError E2101 for who is no admin, and what `ask` throws before it compiles */
export async function candidates(service: Service, call: Call): Promise<Candidates> {
  const ledger = new Ledger(service, call, 'candidates');
  return authored(service, call, ledger, async (caller) => {
    const { read, unread, truncated } = await upstreamsOf(service, call.requestId);
    const found = [...read].flatMap(([connector, schema]) =>
      candidatesIn(schema, connector, caller.manifest),
    );
    return { candidates: found, unread, truncated };
  });
}

/** Drafts a fragment and stores nothing. @throws QueryError E1001 where there is nothing to draft, and as `candidates` */
export async function suggest(service: Service, call: Call, wish: Wish): Promise<Judged<Suggestion>> {
  const ledger = new Ledger(service, call, 'suggest', { kind: 'draft', text: JSON.stringify(wish) });
  return authored(service, call, ledger, async ({ identity: { subject } }) => {
    const served = await servedNow(service);
    return { ...(await suggestion(service, call, served, subject, wish)), versions: versionsOf(served) };
  });
}

/** Judges a fragment or a manifest, and stores nothing. Throws as `candidates`; what is wrong with it is an answer. */
export async function validate(service: Service, call: Call, proposal: Proposal): Promise<Judged<Judgement>> {
  const ledger = new Ledger(service, call, 'validate', { kind: 'draft', text: proposal.text });
  return authored(service, call, ledger, async ({ identity: { subject } }) => {
    const served = await servedNow(service);
    const judgement = await service.drafting.judge(proposal, served, subject);
    return { ...judgement, versions: versionsOf(served) };
  });
}

/** What a draft is judged against: what serves when it is its turn. @throws QueryError E2001 */
async function servedNow(service: Service): Promise<Standing> {
  // A turn of its own: what is published, and what serves of that, change together, but not in one step.
  await setImmediate();
  const { manifest, snapshot } = service.model();
  if (snapshot === null) throw queryError('noSnapshot', {});
  return groundOf(service, { manifest, snapshot });
}

/** What serves, with what it is made of. */
export type Standing = Served & { readonly snapshot: PolicySnapshot };

export function groundOf(
  { publishing }: Service,
  { manifest, snapshot }: Pick<Standing, 'manifest' | 'snapshot'>,
): Standing {
  const { objects } = publishing.versions.head ?? EMPTY_OVERLAY;
  return { base: publishing.file().document, objects, manifest, snapshot };
}

async function suggestion(
  service: Service,
  call: Call,
  served: Standing,
  author: string,
  wish: Wish,
): Promise<Suggestion> {
  if (wish.kind === 'term')
    return (await service.drafting.suggestTerm(shortName(wish.name), served, author)) ?? nothingFor(wish);
  const connector = [...service.engines.keys()].find((name) => wish.name.startsWith(`${name}.`));
  if (connector === undefined) return nothingFor(wish);
  const read = await upstreamOf(service, call.requestId, connector);
  if (typeof read === 'string')
    throw queryError('unresolvable', { detail: `connector \`${connector}\`: ${read}`, hint: null });
  const found = wanted(wish, read, connector, served.manifest);
  if (found === undefined) return nothingFor(wish);
  return service.drafting.suggestRelation(found, served, author);
}

/** A candidate has the name that the list gives it; a table may be adopted already. */
function wanted(
  { kind, name }: Wish,
  read: UpstreamSchema,
  connector: string,
  manifest: Manifest,
): Candidate | undefined {
  if (kind === 'candidate') return candidatesIn(read, connector, manifest).find((c) => c.id === name);
  const relation = read.relations.find((r) => `${connector}.${tableKey(r)}` === name);
  return relation === undefined ? undefined : candidateFor(relation, read, connector, manifest);
}

function nothingFor({ kind, name }: Wish): never {
  const what = { candidate: 'is no candidate', table: 'is no table', term: 'meets nothing in the graph' }[
    kind
  ];
  const hint = kind === 'term' ? null : `${WAYS.candidates.rest}, as \`connector.schema.table\``;
  throw queryError('unresolvable', { detail: `\`${name}\` ${what}`, hint });
}

/** The caller, counted, who is an admin over its whole chain; anybody else is refused, and recorded. @throws QueryError */
export async function adminOf(service: Service, call: Call, ledger: Ledger): Promise<Caller> {
  try {
    return mustBeAdmin(await counted(service, call, ledger, 'authoring'));
  } catch (error) {
    throw await refuse(service, call, ledger, error);
  }
}

/** @throws QueryError E2101 */
export function mustBeAdmin(caller: Caller): Caller {
  if (caller.access.adminRoles.size === 0) throw queryError('authorsOnly', {});
  return caller;
}

/** identify → access → limit → admin → audit the decision → answer → audit the outcome */
export async function authored<T>(
  service: Service,
  call: Call,
  ledger: Ledger,
  answer: (caller: Caller) => T | Promise<T>,
): Promise<T> {
  const caller = await adminOf(service, call, ledger);
  return answered(service, call, ledger, () => answer(caller));
}

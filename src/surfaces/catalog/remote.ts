import { InternalError, type ParsedText } from 'osl-compiler';
import {
  type CatalogCaller,
  type CatalogEngine,
  type CatalogProvider,
  type CatalogQuery,
  type CatalogRun,
  DescriptionCache,
  type StatementDescription,
} from './catalog-requests.js';
import { type Catalogs, MAX_ROWS } from './catalogs.js';
import { Classifier, type StatementLane } from './classify.js';
import type { CatalogModel } from './model.js';
import { type BackendReply, CatalogFault, type ReplyReport, requireNotCancelled } from './reply.js';

export interface RemoteCatalogRequest extends CatalogQuery {
  readonly id: number;
  readonly signature: string;
  readonly subject: string;
  readonly caller: CatalogCaller;
  /** The values and limits of a run; null to only describe the statement. */
  readonly run: CatalogRun | null;
}

export type RemoteCatalogReply =
  | { readonly kind: 'described'; readonly described: StatementDescription }
  | { readonly kind: 'reply'; readonly reply: BackendReply }
  /** The server does not have the model: send it, then repeat the request. */
  | { readonly kind: 'unknown' }
  | { readonly kind: 'fault'; readonly report: ReplyReport };

/** One part of a model, sent in order before the request is repeated. */
export interface CatalogModelPart extends Pick<CatalogModel, 'signature' | 'entities' | 'columns'> {
  readonly id: number;
  readonly at: number;
  readonly of: number;
  readonly part: Uint8Array;
}

export interface CatalogHost {
  ask(request: RemoteCatalogRequest): Promise<RemoteCatalogReply>;
  send(part: CatalogModelPart): Promise<void>;
  stop(id: number): void;
}

const MAX_DESCRIPTIONS = 2_000;

/** Client of catalogs whose engines run in another process, which also queues the statements. */
export class RemoteCatalogs implements CatalogProvider {
  readonly maxRows = MAX_ROWS;
  readonly #host: CatalogHost;
  readonly #classifier = new Classifier();
  readonly #descriptions = new DescriptionCache(MAX_DESCRIPTIONS);
  #lastId = 0;

  constructor(host: CatalogHost) {
    this.#host = host;
  }

  laneOf(text: string, parse: (text: string) => Promise<ParsedText>): StatementLane | Promise<StatementLane> {
    return this.#classifier.laneOf(text, parse);
  }

  cachedDescription({ signature }: CatalogModel, statement: CatalogQuery): StatementDescription | null {
    return this.#descriptions.find(statement, signature);
  }

  async use<T>(
    model: CatalogModel,
    subject: string,
    _signal: AbortSignal | null,
    work: (engine: CatalogEngine) => Promise<T>,
  ): Promise<T> {
    return work({
      describe: async (caller, statement, signal) => {
        const cached = this.cachedDescription(model, statement);
        if (cached !== null) return cached;
        const { text, parameterTypes } = statement;
        const content = { subject, caller, text, parameterTypes, run: null };
        const reply = await this.#request(model, content, signal);
        if (reply.kind !== 'described') throw new InternalError('a catalog did not describe a statement');
        this.#descriptions.add(statement, reply.described, model.signature);
        return reply.described;
      },
      query: async (caller, { text, parameterTypes }, { values, formats, maxRows }, signal) => {
        const run = { values, formats, maxRows };
        const reply = await this.#request(model, { subject, caller, text, parameterTypes, run }, signal);
        if (reply.kind !== 'reply') throw new InternalError('a catalog did not answer a statement');
        return reply.reply;
      },
    });
  }

  async #request(
    model: CatalogModel,
    content: Omit<RemoteCatalogRequest, 'id' | 'signature'>,
    signal: AbortSignal | null,
  ): Promise<Exclude<RemoteCatalogReply, { kind: 'unknown' | 'fault' }>> {
    const id = ++this.#lastId;
    const stop = (): void => this.#host.stop(id);
    requireNotCancelled(signal);
    signal?.addEventListener('abort', stop, { once: true });
    try {
      const request = { id, signature: model.signature, ...content };
      let reply = await this.#host.ask(request);
      if (reply.kind === 'unknown') {
        await this.#send(id, model, signal);
        reply = await this.#host.ask(request);
      }
      requireNotCancelled(signal);
      if (reply.kind === 'fault') throw new CatalogFault(reply.report);
      if (reply.kind === 'unknown') throw new InternalError('a catalog does not know its model');
      return reply;
    } finally {
      signal?.removeEventListener('abort', stop);
    }
  }

  /** Sends the model one part at a time, so that neither process has to handle all of it at once. */
  async #send(id: number, model: CatalogModel, signal: AbortSignal | null): Promise<void> {
    const { signature, entities, columns, parts } = model;
    for (const [at, part] of parts.entries()) {
      requireNotCancelled(signal);
      await this.#host.send({ id, signature, entities, columns, at, of: parts.length, part });
    }
    requireNotCancelled(signal);
  }
}

/** Runs catalog statements for other processes. A statement is identified by its process and request id. */
export class CatalogServer {
  readonly #catalogs: Catalogs;
  readonly #running = new Map<string, AbortController>();
  readonly #receivedParts = new Map<string, CatalogModelPart[]>();

  constructor(catalogs: Catalogs) {
    this.#catalogs = catalogs;
  }

  async answer(process: number, request: RemoteCatalogRequest): Promise<RemoteCatalogReply> {
    const { signature, subject, caller, run } = request;
    const key = `${process} ${request.id}`;
    const model = this.#takeReceivedModel(key) ?? this.#catalogs.modelOf(signature);
    if (model === null) return { kind: 'unknown' };
    const controller = new AbortController();
    this.#running.set(key, controller);
    const { signal } = controller;
    try {
      return await this.#catalogs.use<RemoteCatalogReply>(model, subject, signal, async (engine) => {
        if (run === null)
          return { kind: 'described', described: await engine.describe(caller, request, signal) };
        return { kind: 'reply', reply: await engine.query(caller, request, run, signal) };
      });
    } catch (error) {
      if (error instanceof CatalogFault) return { kind: 'fault', report: error.report };
      throw error;
    } finally {
      this.#running.delete(key);
    }
  }

  addPart(process: number, part: CatalogModelPart): void {
    const key = `${process} ${part.id}`;
    const parts = this.#receivedParts.get(key) ?? [];
    if (part.at !== parts.length) throw new InternalError('a part of a catalog is missing');
    parts.push(part);
    this.#receivedParts.set(key, parts);
  }

  stop(process: number, id: number): void {
    const key = `${process} ${id}`;
    this.#receivedParts.delete(key);
    this.#running.get(key)?.abort();
  }

  #takeReceivedModel(key: string): CatalogModel | null {
    const parts = this.#receivedParts.get(key);
    const [first] = parts ?? [];
    if (parts === undefined || first === undefined || parts.length < first.of) return null;
    this.#receivedParts.delete(key);
    const { signature, entities, columns } = first;
    return Object.freeze({ signature, entities, columns, parts: parts.map(({ part }) => part) });
  }

  forget(process: number): void {
    for (const [key, controller] of this.#running) if (key.startsWith(`${process} `)) controller.abort();
    for (const key of this.#receivedParts.keys())
      if (key.startsWith(`${process} `)) this.#receivedParts.delete(key);
  }
}

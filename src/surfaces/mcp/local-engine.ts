import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { type QueryError, queryError } from 'osl-compiler';
import { describe } from '../../ask/graph/describe.js';
import { ask, publicError, type RequestCall, SessionReads } from '../../ask/index.js';
import { ReceiptRequest } from '../../ask/receipts/receipt-request.js';
import { refuseCall } from '../../ask/request/calls-without-data.js';
import { explainQuestion, MAX_BATCH_BYTES, runPortions } from '../rest/answer.js';
import { parseFields } from '../rest/bodies/json.js';
import { toQueryRequest } from '../rest/bodies/query.js';
import { readRequest } from '../rest/call.js';
import type { Inflight } from '../rest/inflight.js';
import { NdjsonAnswer } from '../rest/json-answer.js';
import { schemaSelection } from '../rest/parameters.js';
import type { RestParts } from '../rest/parts.js';
import { problemOf } from '../rest/problem.js';
import {
  type AnswerOptions,
  AnswerReader,
  type Engine,
  EngineRefusal,
  type JsonDocument,
  type QueryJson,
  withExplain,
} from './engine.js';

type Sender = Pick<RequestCall, 'credentials' | 'origin'>;
type CallOverrides = Pick<AnswerOptions, 'task' | 'approvalReason'>;
const NO_OVERRIDES: CallOverrides = Object.freeze({ task: null, approvalReason: null });

/**
 * In-process engine for the tool calls of one MCP message. Each call is a separate request by the message's sender
 * with its own request id; bodies and rows are handled as in REST.
 */
export class LocalEngine implements Engine {
  readonly #service: RestParts;
  readonly #inflight: Inflight;
  readonly #sender: Sender;
  /** HTTP response to the message; the calls are aborted if it closes. */
  readonly #response: ServerResponse;

  constructor(service: RestParts, inflight: Inflight, sender: Sender, response: ServerResponse) {
    this.#service = service;
    this.#inflight = inflight;
    this.#sender = sender;
    this.#response = response;
  }

  query(question: QueryJson, { maxBytes, receipt, ...overrides }: AnswerOptions, signal: AbortSignal) {
    return this.#call(signal, overrides, async (call, abortSignal) => {
      const { body, parameters } = await this.#read(call, question);
      const reader = new AnswerReader(maxBytes);
      const encoding = new NdjsonAnswer();
      const readRows = () => reader.read(encoding.take().toString('utf8'));
      const answer = await ask(
        this.#service,
        { ...call, body, parameterOids: [], mayBeOld: true },
        {
          parameters,
          resultFormats: encoding.formats(),
          maxRows: 0,
          caching: 'reuse',
          standby: new SessionReads(),
          signal: abortSignal,
          receipt: receipt ? new ReceiptRequest('sequence') : null,
          sink: (plan, versions, redacted) => {
            encoding.begin({ requestId: call.requestId, plan, versions, redacted });
            return {
              write: (dataRows) => {
                if (reader.full) return undefined;
                if (dataRows.length > MAX_BATCH_BYTES)
                  return runPortions(encoding.portions(dataRows), () => {
                    readRows();
                    return true;
                  });
                encoding.rows(dataRows);
                readRows();
                return undefined;
              },
            };
          },
        },
      );
      encoding.end(answer, (await answer.receipt?.issued()) ?? null);
      readRows();
      return reader.end();
    });
  }

  explain(question: QueryJson, task: string | null, signal: AbortSignal): Promise<JsonDocument> {
    return this.#call(signal, { ...NO_OVERRIDES, task }, async (call, abortSignal) => {
      const { body, upstream } = await this.#read(call, withExplain(question));
      const plan = await explainQuestion(
        this.#service,
        { ...call, body, parameterOids: [], mayBeOld: true },
        upstream,
        abortSignal,
      );
      return { text: JSON.stringify(plan), requestId: call.requestId };
    });
  }

  schema(parameters: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<JsonDocument> {
    return this.#call(signal, NO_OVERRIDES, async (call) => {
      const selection = await readRequest(this.#service, call, 'schema', () => schemaSelection(parameters));
      const { body } = await describe(this.#service, call, {
        document: 'schema',
        governed: true,
        wish: selection,
      });
      return { text: body.toString(), requestId: call.requestId };
    });
  }

  async refuse(action: 'query' | 'schema', fault: QueryError): Promise<EngineRefusal> {
    const call = this.#newCall(NO_OVERRIDES);
    return refusalOf(await refuseCall(this.#service, call, action, fault, 'identified'), call.requestId);
  }

  #read(call: RequestCall, question: QueryJson) {
    return readRequest(this.#service, call, 'query', () =>
      toQueryRequest(parseFields(Buffer.from(question))),
    );
  }

  /** Creates a request by the sender; members of `overrides` replace those of the message unless they are null. */
  #newCall(overrides: CallOverrides): RequestCall {
    const { credentials, origin } = this.#sender;
    const given = Object.fromEntries(Object.entries(overrides).filter(([, value]) => value !== null));
    return {
      credentials,
      ...(origin !== undefined && { origin: { ...origin, ...given } }),
      requestId: randomUUID(),
      surface: 'mcp',
    };
  }

  /** Runs one call. @throws EngineRefusal with the problem that REST would send */
  async #call<T>(
    signal: AbortSignal,
    overrides: CallOverrides,
    run: (call: RequestCall, abortSignal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const call = this.#newCall(overrides);
    try {
      if (this.#inflight.draining)
        throw await refuseCall(this.#service, call, 'http', queryError('shuttingDown', {}), 'anyone');
      const info = { call, action: 'mcp', text: null };
      return await this.#inflight.run(this.#response, info, (responseClosed) =>
        run(call, AbortSignal.any([signal, responseClosed])),
      );
    } catch (error) {
      throw refusalOf(
        publicError(this.#service, call.requestId, this.#inflight.toReportedError(error)),
        call.requestId,
      );
    }
  }
}

function refusalOf(error: QueryError, requestId: string): EngineRefusal {
  return new EngineRefusal(error.http, { ...problemOf(error, requestId) }, requestId, error.message);
}

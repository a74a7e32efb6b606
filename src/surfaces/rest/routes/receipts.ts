import type { FastifyInstance } from 'fastify';
import { type ReceiptParts, recordedReceipt } from '../../../ask/receipts/recorded-receipt.js';
import { readRequest } from '../call.js';
import { RECEIPT_OPERATION } from '../openapi/operations.js';
import { queryParameters } from '../parameters.js';
import { sendAnswer } from '../problem.js';

/** `GET /osl/receipts/{request_id}`: the receipt of an earlier answer, for its caller and for auditors. */
export function receiptsRoute(app: FastifyInstance, service: ReceiptParts): void {
  app.get<{ Params: { request_id: string } }>(
    '/osl/receipts/:request_id',
    { schema: RECEIPT_OPERATION },
    async (request, reply) => {
      const { request_id } = request.params;
      await readRequest(service, request.call, 'receipt', () => queryParameters(request, []));
      return sendAnswer(request, reply, await recordedReceipt(service, request.call, request_id));
    },
  );
}

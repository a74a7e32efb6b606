import { createServer } from 'node:http';
import { parentPort } from 'node:worker_threads';

/** A lineage receiver that accepts everything, in its own thread; reports its port. */
const server = createServer((request, response) => {
  request.resume().on('end', () => response.writeHead(204).end());
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  parentPort?.postMessage(typeof address === 'object' ? address?.port : null);
});

import t from 'tap';
import { executionError, parseErrorResponse } from '../../src/engine/upstream-error.js';

t.test('an SQLSTATE decides what a caller is told', async (t) => {
  t.match(executionError('57014', 300), { entry: 'timedOut', message: /300 s/ });
  for (const lost of ['57P01', '57P03', '08003']) {
    t.match(executionError(lost, 300), { entry: 'execution', sqlstate: '08006' }, lost);
  }
  t.match(executionError('22012', 300), { entry: 'execution', sqlstate: '22012' });
});

t.test('an ErrorResponse is read whole, or as far as it goes', async (t) => {
  const body = Buffer.from('SERROR\0C22012\0Mdivision by zero\0Hdo not\0\0');
  t.same(parseErrorResponse(body), {
    sqlstate: '22012',
    message: 'division by zero',
    detail: null,
    hint: 'do not',
  });
  t.equal(parseErrorResponse(Buffer.from('C220')).sqlstate, 'XX000');
});

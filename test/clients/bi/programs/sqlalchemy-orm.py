import os
import sqlalchemy as sa
from sqlalchemy import func, case, literal, select
from sqlalchemy.orm import declarative_base, relationship, Session, joinedload, selectinload, subqueryload, aliased

url = sa.engine.URL.create('postgresql+psycopg2', os.environ['PGUSER'], os.environ['PGPASSWORD'], '127.0.0.1', int(os.environ['PGPORT']), os.environ['PGDATABASE'])
engine = sa.create_engine(url, isolation_level='AUTOCOMMIT')
Base = declarative_base()


class Customer(Base):
    __tablename__ = 'customer'
    __table_args__ = {'schema': 'entities'}
    id = sa.Column(sa.Integer, primary_key=True)
    name = sa.Column(sa.Text)
    region = sa.Column(sa.Text)
    born = sa.Column(sa.Date)
    orders = relationship('Order', back_populates='customer', order_by='Order.id')


class Order(Base):
    __tablename__ = 'order'
    __table_args__ = {'schema': 'entities'}
    id = sa.Column(sa.BigInteger, primary_key=True)
    customer_id = sa.Column(sa.Integer, sa.ForeignKey('entities.customer.id'))
    region = sa.Column(sa.Text)
    status = sa.Column(sa.Text)
    quantity = sa.Column(sa.Integer)
    amount = sa.Column(sa.Numeric)
    placed_at = sa.Column(sa.DateTime(timezone=True))
    customer = relationship('Customer', back_populates='orders')


with Session(engine) as s:
    Asked = [
        lambda: s.query(Customer).order_by(Customer.id).all(),
        lambda: s.query(Customer).options(joinedload(Customer.orders)).order_by(Customer.id).all(),
        lambda: s.query(Customer).options(selectinload(Customer.orders)).order_by(Customer.id).limit(3).all(),
        lambda: s.query(Customer).options(subqueryload(Customer.orders)).order_by(Customer.id).limit(2).all(),
        lambda: s.query(Customer).options(joinedload(Customer.orders)).order_by(Customer.id).limit(2).all(),
        lambda: s.query(Order).join(Order.customer).filter(Customer.region == 'eu', Order.status.in_(['new', 'paid'])).order_by(Order.id).all(),
        lambda: s.query(Order.region, func.count(Order.id), func.sum(Order.amount)).group_by(Order.region).having(func.count() > 1).order_by(Order.region).all(),
        lambda: s.query(Customer).filter(Customer.orders.any(Order.quantity > 30)).order_by(Customer.id).all(),
        lambda: s.query(Customer).filter(~Customer.orders.any()).order_by(Customer.id).all(),
        lambda: s.query(Order).filter(Order.customer.has(name='Ada')).order_by(Order.id).count(),
        lambda: s.query(func.date_trunc('month', Order.placed_at).label('m'), func.count()).group_by('m').order_by('m').all(),
        lambda: s.query(Order.id, func.row_number().over(partition_by=Order.customer_id, order_by=Order.placed_at.desc()).label('rn')).order_by(Order.id).all(),
        lambda: s.query(Order.id, case((Order.quantity < 10, 'small'), else_='big').label('size')).order_by(Order.id).limit(5).all(),
        lambda: s.query(Customer.name.ilike('%a%'), Customer.born.is_(None)).order_by(Customer.id).all(),
        lambda: s.query(sa.exists().where(Order.status == 'lost')).scalar(),
        lambda: s.execute(select(func.count()).select_from(select(Order.customer_id).distinct().subquery())).scalar(),
        lambda: s.execute(select(Order.status).union_all(select(Customer.region)).order_by('status').limit(5)).all(),
        lambda: s.execute(select(Order.id).where(Order.amount > select(func.avg(Order.amount)).scalar_subquery()).order_by(Order.id)).all(),
        lambda: s.execute(select(sa.cast(Order.amount, sa.Integer), func.coalesce(Order.status, literal('x'))).order_by(Order.id).slice(2, 5)).all(),
        lambda: s.execute(select(sa.extract('year', Order.placed_at), func.percentile_cont(0.5).within_group(Order.amount)).group_by(sa.extract('year', Order.placed_at)).order_by(1)).all(),
        lambda: s.execute(select(sa.distinct(Order.status)).order_by(Order.status)).all(),
        lambda: s.execute(select(Customer.id, Order.id).outerjoin(Order, sa.and_(Order.customer_id == Customer.id, Order.status == 'paid')).order_by(Customer.id, Order.id)).all(),
    ]
    top = select(Order.customer_id, func.sum(Order.amount).label('spend')).group_by(Order.customer_id).cte('top')
    Asked.append(lambda: s.execute(select(Customer.name, top.c.spend).join(top, top.c.customer_id == Customer.id).order_by(Customer.id)).all())
    chief = aliased(Order)
    lat = select(chief.id).where(chief.customer_id == Customer.id).order_by(chief.amount.desc()).limit(1).lateral('l')
    Asked.append(lambda: s.execute(select(Customer.id, lat.c.id).join(lat, sa.true()).order_by(Customer.id)).all())
    for ask in Asked:
        try:
            ask()
        except Exception as x:  # what one of them says must not keep the others from being heard
            print(x)

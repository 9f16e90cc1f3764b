"""Relevance vector machines: read `evidence`, then `relevance_vector`.

`evidence` holds the marginal likelihood, its maximisation and the mathematics;
`relevance_vector` the classifier and the regressor on top of it.
"""

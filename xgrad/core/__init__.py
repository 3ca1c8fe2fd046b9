"""Tensors, ops, the recorded graph, and the engine of the backward pass.

The words of the core:

- A *function* is an `Op`, the description of its inputs, options and rules, that can be called
  (`function.py`). Functions of users and of the library are of one class.
- A *rule* is code that computes a result (`forward`) or the gradient for one input. It is written
  against a namespace of the standard. A *kernel* is a forward rule on one device.
- A *node* records one call, and a *leaf* stands for the tensor of a user (`graph.py`). The *edge*
  of a tensor is one of the two.
- A `BackwardSpec` says what the nodes of an op save, and how its rules are called with that.
- A *receiver* keeps the gradient and the value of a leaf in memory of its own: an optimizer's.
- A *recorder* records a captured step (`backend/recording.py`), not the graph.
- An *interceptor* sees all calls of ops: for `vmap`, profiles, anomalies and captured steps.
- A *provider* is a module above the core that some calls of the core need (`providers.py`).
"""
